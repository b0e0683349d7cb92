// In sanitizer builds, Open MPI's plugins stay loaded at the end. What they leave behind could otherwise not be told
// from what we do: its call stack would have no names.
#include <dlfcn.h>
#include <mpi.h>

namespace {
bool ending = false;
}

extern "C" int MPI_Finalize() {
  ending = true;
  return PMPI_Finalize();
}

extern "C" int dlclose(void* library) noexcept {
  static const auto unload = reinterpret_cast<int (*)(void*)>(::dlsym(RTLD_NEXT, "dlclose"));
  return ending ? 0 : unload(library);
}
