#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace psgd {

/// MPI from initialisation to finalisation: one object in a process, alive while MPI is used.
class MpiSession {
 public:
  /// `threads`: MPI_THREAD_FUNNELED (only the main thread communicates: Paper) or
  /// MPI_THREAD_SERIALIZED (main and hook thread, one at a time: PyTorch DDP). Throws Error if MPI
  /// provides less, or if a launcher's variables say that this process is one of several while MPI
  /// sees it alone.
  explicit MpiSession(int threads);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int worker() const { return worker_; }
  int workers() const { return workers_; }
  /// This worker's number among those on its host, and how many they are.
  int local_worker() const { return local_worker_; }
  int local_workers() const { return local_workers_; }
  /// Cores that the workers of this host may use, all of them together.
  int local_cores() const { return local_cores_; }
  /// The thread level that MPI provides: "funneled", "serialized" or "multiple".
  std::string thread_level() const;
  MPI_Comm communicator() const { return communicator_; }

  /// Ends all workers at once with `status`; nothing after it runs.
  [[noreturn]] static void abort(int status);

 private:
  int worker_ = 0;
  int workers_ = 1;
  int local_worker_ = 0;
  int local_workers_ = 1;
  int local_cores_ = 1;
  int provided_ = 0;
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

/// What a launcher's environment says about the job, before MPI is asked.
struct LaunchHints {
  int workers = 0;        ///< 0: not said
  int local_workers = 0;  ///< 0: not said
  std::string source;     ///< the variable that said so
};
LaunchHints launch_hints();

/// What carries messages between the workers, as far as Open MPI shows it: "ob1 (self,vader)" or
/// "ucx (...)".
std::string transport_in_use();

/// The cores this process is bound to.
std::vector<int> bound_cores();

/// Host name of this process.
std::string host_name();

}  // namespace psgd
