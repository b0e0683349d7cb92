#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <string>

#include "harness/mpi/host_memory.h"

namespace psgd {

/// What the workers of a host tell each other beside MPI. It can still be read when the one who
/// told it is gone.
class HostBoard {
 public:
  /// Called by all workers of `communicator` together. Where a host's workers cannot share memory,
  /// each of them is taken for the only one.
  explicit HostBoard(MPI_Comm communicator);

  /// True for the first worker of the host that calls it: the others leave the word to that one.
  bool take_the_word();

  /// What this worker says of itself from now on, at most 31 characters. One thread at a time.
  void note(const char* text);
  /// The last note of a worker, by its number in `communicator`; empty if none is known: it wrote
  /// none, or it is on another host.
  std::string note_of(int worker) const;

 private:
  static constexpr std::size_t kNoteSize = 32;
  struct Slot;
  /// Null where memory is not shared.
  Slot* slot(int worker) const;

  std::optional<HostMemory> memory_;
  int worker_ = 0;
  int workers_ = 0;
};

}  // namespace psgd
