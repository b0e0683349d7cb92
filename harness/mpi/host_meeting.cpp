#include "harness/mpi/host_meeting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "harness/error.h"
#include "harness/mpi/mpi_check.h"
#include "harness/mpi/session.h"

namespace psgd {

/// What the workers of a host share.
struct HostMeeting::Place {
  alignas(64) std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> round;
};

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

/// Sleeps while `word` holds `value`. std::atomic::wait would do within one process only.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec at_most{1, 0};  // a wake-up that was lost would cost a second, not the run
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &at_most, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

HostMeeting::HostMeeting(MPI_Comm communicator, std::optional<int> pretended_host) {
  MPI_Comm host = MPI_COMM_NULL;
  int worker = 0;
  PSGD_MPI(MPI_Comm_rank(communicator, &worker));
  if (pretended_host)
    PSGD_MPI(MPI_Comm_split(communicator, *pretended_host, worker, &host));
  else
    host = workers_of_this_host(communicator);
  PSGD_MPI(MPI_Comm_rank(host, &local_worker_));
  PSGD_MPI(MPI_Comm_size(host, &local_workers_));
  PSGD_MPI(MPI_Comm_split(communicator, local_worker_ == 0 ? 0 : MPI_UNDEFINED, worker,
                          &first_workers_));
  if (first_workers_ != MPI_COMM_NULL) PSGD_MPI(MPI_Comm_size(first_workers_, &hosts_));
  memory_.emplace(host, sizeof(Place));
  place_ = static_cast<Place*>(memory_->get());
  PSGD_MPI(MPI_Comm_free(&host));
  int everywhere = place_ != nullptr ? 1 : 0;
  PSGD_MPI(MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, communicator));
  if (everywhere == 0)
    throw Error(
        "the workers of a host cannot share memory in /dev/shm, which they need to wait asleep; "
        "give it room "
        "(a container: --shm-size), or set wait to yield");
}

void HostMeeting::meet(const std::function<void(MPI_Request&)>& complete) {
  const std::uint32_t round = place_->round.load();
  const auto all = static_cast<std::uint32_t>(local_workers_);
  const bool is_last = place_->arrived.fetch_add(1) + 1 == all;
  if (local_worker_ != 0) {
    if (is_last) wake_all(place_->arrived);
    while (place_->round.load() == round) sleep_while(place_->round, round);
    return;
  }
  for (std::uint32_t arrived = place_->arrived.load(); arrived != all;
       arrived = place_->arrived.load())
    sleep_while(place_->arrived, arrived);
  if (hosts_ > 1) {
    MPI_Request request = MPI_REQUEST_NULL;
    PSGD_MPI(MPI_Ibarrier(first_workers_, &request));
    complete(request);
  }
  place_->arrived.store(0);  // before anyone can arrive for the next round
  place_->round.store(round + 1);
  wake_all(place_->round);
}

}  // namespace psgd
