// In sanitizer builds, Open MPI's plugins stay loaded once they are. What they leave behind could
// otherwise not be told from what we do: its call stack would have no names.
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <initializer_list>

extern "C" int dlclose(void* library) noexcept {
  static const auto unload = reinterpret_cast<int (*)(void*)>(::dlsym(RTLD_NEXT, "dlclose"));
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return unload(library);
  // Which transport layers are loaded is how run.json comes to know the transport: those that would
  // not be any more are called mca-pml_ and so on.
  for (const char* layer : {"/mca_pml_", "/mca_btl_", "/mca_mtl_"})
    if (char* const name = std::strstr(map->l_name, layer)) std::strchr(name, '_')[0] = '-';
  return 0;
}
