// In sanitizer builds, Open MPI's plugins stay loaded once they are. What they leave behind could otherwise not be told
// from what we do: its call stack would have no names. All but those of the transport layers that Open MPI unloads while
// it starts: which of them are left is how run.json comes to know the transport.
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <initializer_list>

namespace {
bool mpi_has_started() {
  static const auto initialized = reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  int flag = 0;
  return initialized != nullptr && initialized(&flag) == 0 && flag != 0;
}
}  // namespace

extern "C" int dlclose(void* library) noexcept {
  static const auto unload = reinterpret_cast<int (*)(void*)>(::dlsym(RTLD_NEXT, "dlclose"));
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return unload(library);
  if (mpi_has_started()) return 0;
  for (const char* layer : {"/mca_pml_", "/mca_btl_", "/mca_mtl_"})
    if (std::strstr(map->l_name, layer) != nullptr) return unload(library);
  return 0;
}
