// In sanitizer builds, Open MPI's plugins stay loaded once they are. What they leave behind could otherwise not be told
// from what we do: its call stack would have no names. All but those of the transport layers: which of them are loaded
// is how run.json comes to know the transport.
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <initializer_list>

extern "C" int dlclose(void* library) noexcept {
  static const auto unload = reinterpret_cast<int (*)(void*)>(::dlsym(RTLD_NEXT, "dlclose"));
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return unload(library);
  for (const char* layer : {"/mca_pml_", "/mca_btl_", "/mca_mtl_"})
    if (std::strstr(map->l_name, layer) != nullptr) return unload(library);
  return 0;
}
