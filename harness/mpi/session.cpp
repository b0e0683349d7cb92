#include "harness/mpi/session.h"

#include <link.h>
#include <mpi.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "harness/error.h"
#include "harness/mpi/mpi_check.h"

namespace psgd {
namespace {

/// A positive number from the environment, 0 if absent or not a number.
int number_from(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::max(0, std::atoi(text));
}

const char* level_name(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE: return "single";
    case MPI_THREAD_FUNNELED: return "funneled";
    case MPI_THREAD_SERIALIZED: return "serialized";
    default: return "multiple";
  }
}

/// Lets this process and its threads compute for up to 0.1 s before another gets the core, instead
/// of some milliseconds: workers that share a core evict each other's data from its caches at every
/// change. Linux 6.12 and later; an older kernel ignores it, and an unwilling one keeps its usual
/// turns.
void take_long_turns() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes{};  // the kernel's sched_attr, in the size that all versions know
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
      attributes.policy != SCHED_OTHER)
    return;
  attributes.runtime = 100'000'000;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/// Before MPI starts, because it reads its settings from the environment then and starts threads,
/// which take turns as this one does. Settings of the user's win.
void tune_for_oversubscription(const LaunchHints& hints) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (hints.local_workers <= cores) return;
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  take_long_turns();
}

/// Collects the names of Open MPI's loaded components of one kind ("pml", "btl") from the shared
/// objects in this process: "mca_btl_vader.so" gives "vader". Components linked into libmpi itself
/// do not show.
std::string loaded_components(const std::string& kind) {
  struct Search {
    std::string prefix, found;
  } search{"mca_" + kind + "_", {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const std::string path = info->dlpi_name;
        const auto start = path.rfind(wanted.prefix);
        if (start == std::string::npos) return 0;
        const auto name_start = start + wanted.prefix.size();
        if (!wanted.found.empty()) wanted.found += ',';
        wanted.found += path.substr(name_start, path.rfind(".so") - name_start);
        return 0;
      },
      &search);
  return search.found;
}

/// The union of the core sets of all workers in `local`.
int count_cores(MPI_Comm local) {
  unsigned char may_use[CPU_SETSIZE] = {};
  for (const int core : bound_cores()) may_use[core] = 1;
  PSGD_MPI(MPI_Allreduce(MPI_IN_PLACE, may_use, CPU_SETSIZE, MPI_UNSIGNED_CHAR, MPI_BOR, local));
  return static_cast<int>(std::count(std::begin(may_use), std::end(may_use), 1));
}

std::string environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

LaunchHints launch_hints() {
  LaunchHints hints;
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    // A shell inside a Slurm allocation sees SLURM_NTASKS without being a task; only a step has a
    // process id.
    if (std::strcmp(variable, "SLURM_NTASKS") == 0 && std::getenv("SLURM_PROCID") == nullptr)
      continue;
    if (const int workers = number_from(variable); workers > 0) {
      hints.workers = workers;
      hints.source = variable;
      break;
    }
  }
  hints.local_workers = number_from("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (hints.local_workers == 0) hints.local_workers = number_from("SLURM_NTASKS_PER_NODE");
  return hints;
}

MpiSession::MpiSession(int threads) {
  const LaunchHints hints = launch_hints();
  tune_for_oversubscription(hints);
  if (MPI_Init_thread(nullptr, nullptr, threads, &provided_) != MPI_SUCCESS)
    throw Error("MPI could not be initialised on " + host_name());
  if (provided_ < threads)
    throw Error(std::string("MPI provides thread level '") + level_name(provided_) + "', but '" +
                level_name(threads) + "' is needed; use an MPI built with thread support");
  PSGD_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_));
  PSGD_MPI(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN));
  PSGD_MPI(MPI_Comm_rank(communicator_, &worker_));
  PSGD_MPI(MPI_Comm_size(communicator_, &workers_));
  if (workers_ == 1 && hints.workers > 1)
    throw Error("the launcher started " + std::to_string(hints.workers) + " workers (" +
                hints.source +
                "), but MPI sees each alone: the launcher does not belong to the MPI this program "
                "was built with. "
                "Start it with that MPI's mpirun, or with srun --mpi=pmix (srun --mpi=list shows "
                "what there is)");
  MPI_Comm local = MPI_COMM_NULL;
  PSGD_MPI(
      MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, worker_, MPI_INFO_NULL, &local));
  PSGD_MPI(MPI_Comm_rank(local, &local_worker_));
  PSGD_MPI(MPI_Comm_size(local, &local_workers_));
  local_cores_ = count_cores(local);
  PSGD_MPI(MPI_Comm_free(&local));
}

MpiSession::~MpiSession() {
  if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
  MPI_Finalize();
}

std::string MpiSession::thread_level() const { return level_name(provided_); }

void MpiSession::abort(int status) {
  std::fflush(nullptr);
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

std::string transport_in_use() {
  // A component asked for by name is the one in use, or MPI would not have started. MPI's tool
  // interface would tell the same, but Open MPI 4.1 crashes when it is asked for a text that is not
  // set.
  std::string pml = environment("OMPI_MCA_pml");
  if (pml.empty() || pml.front() == '^' || pml.find(',') != std::string::npos)
    pml = loaded_components("pml");
  if (pml == "ucx") {
    const std::string tls = environment("UCX_TLS");
    return "ucx (" + (tls.empty() ? std::string("its choice of transports") : tls) + ")";
  }
  const std::string btl = loaded_components("btl");
  return (pml.empty() ? std::string("Open MPI's choice") : pml) +
         (btl.empty() ? "" : " (" + btl + ")");
}

std::vector<int> bound_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

std::string host_name() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

void mpi_failed(int code, const char* call, const char* file, int line) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  int worker = -1;
  MPI_Error_string(code, text, &length);
  MPI_Comm_rank(MPI_COMM_WORLD, &worker);
  std::fprintf(stderr, "error: worker %d on %s: %s failed: %s (%s:%d)\n", worker,
               host_name().c_str(), call, text, file, line);
  MpiSession::abort(kFailed);
}

}  // namespace psgd
