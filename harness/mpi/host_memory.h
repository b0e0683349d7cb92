#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

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

/// A flag that the workers of a host share and that stays up when those who raised it are gone.
class HostFlag {
 public:
  /// Called by all workers of `communicator` together.
  explicit HostFlag(MPI_Comm communicator);

  /// Raises it. True for the first worker of the host that does (and for each where they cannot share memory).
  bool raise() { return flag() == nullptr || flag()->exchange(1) == 0; }

 private:
  using Flag = std::atomic<std::uint32_t>;
  Flag* flag() const { return static_cast<Flag*>(memory_->get()); }

  std::optional<HostMemory> memory_;
};

}  // namespace psgd
