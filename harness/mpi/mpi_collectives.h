#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compressors/collectives.h"
#include "harness/mpi/host_meeting.h"

namespace psgd {

/// How a worker waits for the others.
enum class Wait {
  spin,   ///< in MPI; lowest latency, keeps a core busy
  yield,  ///< polls and offers the core to others between two polls
  sleep,  ///< sleeps until all have come, then polls ever more seldom: for more workers than cores
};

/// "spin", "yield", "sleep"; "auto" gives sleep if there are more workers than cores on a host,
/// else spin.
Wait wait_from(const std::string& text, bool oversubscribed);
std::string name(Wait wait);

/// What this worker has handed to collectives since the start, per purpose.
struct TrafficCount {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< size of this worker's contribution, not what travels on a network
};

/// Collectives over MPI. Any thread may call, one call at a time (a lock sees to it); the order of
/// calls must be the same on all workers, which is up to the caller.
///
/// Tensors on a GPU are staged through host memory unless MPI says that it is CUDA-aware.
class MpiCollectives final : public Collectives {
 public:
  /// Called by all workers of `communicator` together.
  MpiCollectives(MPI_Comm communicator, Wait wait);
  ~MpiCollectives() override;

  int worker() const override { return worker_; }
  int size() const override { return size_; }
  void all_reduce(at::Tensor& values, Traffic traffic) override;
  std::unique_ptr<Request> start_all_reduce(at::Tensor& values, Traffic traffic) override;
  void all_gather(const at::Tensor& values, at::Tensor& received, Traffic traffic) override;
  void broadcast(at::Tensor& values, int root, Traffic traffic) override;

  /// Returns when all workers have called it.
  void barrier();
  /// Replaces `text` by worker `root`'s.
  void broadcast_text(std::string& text, int root);
  /// Everyone's text, in worker order, on every worker.
  std::vector<std::string> all_gather_text(const std::string& text);

  TrafficCount traffic(Traffic kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  /// Continues counting from a checkpoint.
  void set_traffic(Traffic kind, TrafficCount count) {
    counts_[static_cast<std::size_t>(kind)] = count;
  }
  /// 8 x bytes of gradients: the bits of the notebook's figures, exact.
  std::int64_t gradient_bits() const { return 8 * traffic(Traffic::gradient).bytes; }
  /// Counts from 0 again; what the set-up sent is no part of a run.
  void forget_traffic() { counts_ = {}; }
  Wait wait() const { return wait_; }
  /// Whether some thread is inside a collective at this moment; for whoever watches from another
  /// thread.
  bool is_busy() {
    const std::unique_lock attempt(lock_, std::try_to_lock);
    return !attempt.owns_lock();
  }

  /// Compares every kind of collective with a sum formed here, at sizes around the ones where MPI
  /// changes its algorithm. Throws Error naming the collective and the first wrong element.
  void self_test();

 private:
  class PendingReduce;
  void count(const at::Tensor& values, Traffic traffic);
  void meet();
  void complete(MPI_Request& request) const;
  MPI_Datatype type_of(const at::Tensor& values) const;
  MPI_Op sum_of(const at::Tensor& values) const;

  MPI_Comm communicator_;
  Wait wait_;
  std::unique_ptr<HostMeeting> meeting_;  // with Wait::sleep only
  int worker_ = 0;
  int size_ = 1;
  MPI_Datatype half_ = MPI_DATATYPE_NULL;
  MPI_Op add_halves_ = MPI_OP_NULL;
  bool cuda_aware_ = false;
  std::mutex lock_;
  std::array<TrafficCount, static_cast<std::size_t>(Traffic::count_)> counts_{};
};

}  // namespace psgd
