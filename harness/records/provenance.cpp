#include "harness/records/provenance.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <thread>

#include "psgd_git_commit.h"

#ifdef PSGD_HAVE_UCX_HEADER
#include <ucp/api/ucp_version.h>
#endif

namespace psgd {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string all(text.data(),
                        static_cast<std::size_t>(std::clamp(length, 0, int(text.size()))));
  return all.substr(0, all.find_first_of(",\n"));
}

/// The version of the UCX that MPI has loaded. Never loads it: that would change this process's
/// signal handlers and memory hooks in runs that do not use it.
std::string ucx_version() {
  if (void* library = ::dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD)) {
    std::string version = "loaded";
    if (void* symbol = ::dlsym(library, "ucp_get_version_string"))
      version = reinterpret_cast<const char* (*)()>(symbol)();
    ::dlclose(library);
    return version;
  }
#ifdef PSGD_HAVE_UCX_HEADER
  return std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR) +
         " (installed, not loaded)";
#else
  return "none";
#endif
}

std::string cuda_version() {
  if (!at::hasCUDA()) return "none";
  const long version = at::detail::getCUDAHooks().versionCUDART();  // 11080 for 11.8
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

nlohmann::ordered_json build_info() {
  return {{"git_commit", PSGD_GIT_COMMIT}, {"build_type", PSGD_BUILD_TYPE},
          {"compiler", compiler()},        {"libtorch", TORCH_VERSION},
          {"mpi", mpi_version()},          {"ucx", ucx_version()},
          {"cuda", cuda_version()}};
}

nlohmann::ordered_json machine_info() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return {{"host", host.data()}, {"cpu", cpu_model()}, {"cores", usable_cores()}};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace psgd
