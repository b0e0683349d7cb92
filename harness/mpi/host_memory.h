#pragma once

#include <mpi.h>

#include <cstddef>

namespace psgd {

/// Memory that the workers of one host share, zero at first. Nothing is left of it after a crash.
class HostMemory {
 public:
  /// Called by all workers of `host`, a communicator of workers on one host, together.
  HostMemory(MPI_Comm host, std::size_t size);
  ~HostMemory();  // frees without the other workers: they may be gone
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// Null on a worker for which /dev/shm had no room, or that could not open it.
  void* get() const { return memory_; }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
};

/// The workers of `communicator` that share this one's host; all together. To be freed.
MPI_Comm workers_of_this_host(MPI_Comm communicator);

}  // namespace psgd
