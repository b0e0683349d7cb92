#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "compressors/phase_clock.h"
#include "compressors/scheme.h"
#include "harness/mpi/mpi_collectives.h"
#include "harness/records/run_folder.h"

namespace psgd {

/// One batch on one worker.
struct BatchRecord {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t batch = 0;  ///< within the epoch, from 1
  std::int64_t step = 0;   ///< since the start, from 1
  double learning_rate = 0;
  double loss = 0;        ///< mean over this worker's batch
  std::int64_t bits = 0;  ///< handed to gradient collectives since the start
  bool timed = true;      ///< false for a process's first batch, which is left out of the means
  std::array<PhaseClock::Nanoseconds, kPhases> phases{};
};

/// What the workers tell each other when they meet to write their records.
struct Meeting {
  bool stop = false;            ///< some worker was asked to stop
  bool checkpoint_due = false;  ///< worker 0's clock says so
  bool finite = true;           ///< all losses of all workers are
  double batch_seconds =
      0;  ///< mean over the batches and workers written now; 0 if there were none
};

/// Keeps each worker's records until the workers meet, then worker 0 writes them all to
/// batches.jsonl.
class BatchLog {
 public:
  /// `folder`: worker 0's, null elsewhere.
  BatchLog(MpiCollectives& collectives, RunFolder* folder)
      : collectives_(collectives), folder_(folder) {}

  void write_to(RunFolder* folder) { folder_ = folder; }

  void add(const BatchRecord& record);
  std::size_t pending() const { return pending_.size(); }

  /// All workers together: exchanges `mine` and the pending records, writes them, and forgets them.
  Meeting meet(const Meeting& mine);

  /// Mean seconds per timed batch of each phase: {"batch": {"min", "mean", "max"}, ...} over the
  /// workers, each worker's mean over its timed batches. All workers together.
  nlohmann::ordered_json phase_means();
  std::int64_t batches_timed() const { return timed_; }

  void visit_state(StateVisitor& visitor);

 private:
  void write(const std::vector<std::int64_t>& everyones, std::size_t per_worker);

  MpiCollectives& collectives_;
  RunFolder* folder_;
  std::vector<BatchRecord> pending_;
  std::array<std::int64_t, kPhases> sums_{};
  std::int64_t timed_ = 0;
};

}  // namespace psgd
