#pragma once

#include <mpi.h>

#include <functional>
#include <optional>

#include "harness/mpi/host_memory.h"

namespace psgd {

/// A barrier among all workers at which those of a host wait asleep, without polling: with more
/// workers than cores each poll of a waiting worker would take a core away from one that still
/// computes.
///
/// The workers of a host meet in shared memory, where the kernel wakes them (futex); if there are
/// several hosts, the first worker of each then meets the others over MPI.
class HostMeeting {
 public:
  /// Called by all workers of `communicator` together. Throws Error on all of them if a host cannot
  /// share memory. `pretended_host`: for tests on one host; workers with the same number here are
  /// taken to share one.
  explicit HostMeeting(MPI_Comm communicator, std::optional<int> pretended_host = {});
  HostMeeting(const HostMeeting&) = delete;
  HostMeeting& operator=(const HostMeeting&) = delete;

  /// Returns when all workers have called it. `complete` waits for a request of MPI's.
  void meet(const std::function<void(MPI_Request&)>& complete);

 private:
  struct Place;

  std::optional<HostMemory> memory_;
  Place* place_ = nullptr;  ///< in memory_
  int local_worker_ = 0;
  int local_workers_ = 1;
  int hosts_ = 1;
  MPI_Comm first_workers_ =
      MPI_COMM_NULL;  // of all hosts; only the first worker of a host is in it
};

}  // namespace psgd
