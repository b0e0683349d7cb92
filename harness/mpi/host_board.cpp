#include "harness/mpi/host_board.h"

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "harness/mpi/mpi_check.h"

namespace psgd {
namespace {

using Word = std::atomic<std::uint32_t>;
static_assert(sizeof(Word) == sizeof(std::uint32_t) && Word::is_always_lock_free);

}  // namespace

/// One for each worker, in the memory that those of a host share.
struct HostBoard::Slot {
  alignas(64) Word taken;  ///< the word; in the first slot
  Word notes;              ///< how many were written
  /// The last note is in texts[notes % 2]: a worker may be killed while it writes the next.
  char texts[2][kNoteSize];
};

HostBoard::HostBoard(MPI_Comm communicator) {
  PSGD_MPI(MPI_Comm_rank(communicator, &worker_));
  PSGD_MPI(MPI_Comm_size(communicator, &workers_));
  MPI_Comm host = workers_of_this_host(communicator);
  memory_.emplace(host, sizeof(Slot) * static_cast<std::size_t>(workers_));
  PSGD_MPI(MPI_Comm_free(&host));
}

HostBoard::Slot* HostBoard::slot(int worker) const {
  return memory_->get() == nullptr ? nullptr : static_cast<Slot*>(memory_->get()) + worker;
}

bool HostBoard::take_the_word() {
  Slot* const first = slot(0);
  return first == nullptr || first->taken.exchange(1) == 0;
}

void HostBoard::note(const char* text) {
  Slot* const mine = slot(worker_);
  if (mine == nullptr) return;
  const std::uint32_t next = mine->notes.load() + 1;
  std::snprintf(mine->texts[next % 2], kNoteSize, "%s", text);
  mine->notes.store(next);
}

std::string HostBoard::note_of(int worker) const {
  const Slot* const its = slot(worker);
  const std::uint32_t notes = its == nullptr ? 0 : its->notes.load();
  return notes == 0 ? std::string() : std::string(its->texts[notes % 2]);
}

}  // namespace psgd
