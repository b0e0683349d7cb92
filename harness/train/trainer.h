#pragma once

#include <torch/torch.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "compressors/scheme.h"
#include "harness/config/options.h"
#include "harness/data/dataset.h"
#include "harness/data/loader.h"
#include "harness/engine/engine.h"
#include "harness/mpi/mpi_collectives.h"
#include "harness/optim/running_average.h"
#include "harness/optim/schedule.h"
#include "harness/optim/sgd.h"
#include "harness/records/run_folder.h"
#include "harness/train/batch_log.h"
#include "harness/train/score.h"
#include "harness/train/watchdog.h"
#include "models/model.h"

namespace psgd {

/// What a trainer is given; all must outlive it.
struct TrainerParts {
  const Options& options;
  MpiCollectives& collectives;
  const Dataset& dataset;
  torch::Device device;
  RunFolder* folder;  ///< worker 0's, null elsewhere
  Watchdog& watchdog;
};

/// Why training ended.
enum class Ending { finished, interrupted, diverged };

/// The training loop of both originals: their order of batches, schedule, optimiser and tests; the
/// engine and its scheme reduce the gradients.
class Trainer {
 public:
  /// Builds model (all workers from the same seed), scheme, engine, optimiser and loader.
  explicit Trainer(TrainerParts parts);
  ~Trainer();

  /// Where to write from now on: worker 0's folder, null elsewhere.
  void write_to(RunFolder* folder) {
    parts_.folder = folder;
    log_.write_to(folder);
  }

  /// Called after an epoch, or when the workers have agreed that one is due, with all workers at
  /// the same step.
  std::function<void()> save_checkpoint;

  /// Trains from where it is to the end. All workers together; all get the same answer.
  Ending run();

  /// To be called before visit_state() restores: lets the engine go through what only a first step
  /// does.
  void prepare_resume();

  /// Everything that a run must keep to go on as if it had not stopped.
  void visit_state(StateVisitor& visitor);

  std::int64_t step() const { return step_; }
  Model& model() { return *model_; }
  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  Scheme& scheme() { return *scheme_; }

  /// run.json's "model".
  nlohmann::ordered_json describe_model() const;
  /// run.json's "batch_time", "batches_timed", "phases", "totals", "final", "counters". All workers
  /// together.
  nlohmann::ordered_json summary();

 private:
  Ending train_epoch();
  void train_batch(std::int64_t batches);
  void finish_epoch();
  void test(const char* weights);
  void write_metrics(const char* split, const char* weights, const Score& score);
  Meeting meet();
  bool meeting_is_due(std::int64_t batches) const;
  double seconds() const;

  TrainerParts parts_;
  std::vector<torch::Tensor> parameters_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Scheme> scheme_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Sgd> sgd_;
  std::unique_ptr<RunningAverage> running_average_;  // Paper only
  std::unique_ptr<TrainLoader> loader_;
  ScheduleOptions schedule_;
  BatchLog log_;
  PhaseClock clock_;

  std::int64_t epoch_ = 0;   ///< from 0
  std::int64_t batch_ = 0;   ///< batches done in this epoch
  std::int64_t step_ = 0;    ///< batches done since the start
  Score train_score_;        ///< of this epoch so far, this worker
  bool first_batch_ = true;  ///< of this process
  bool met_outside_ =
      true;  ///< the workers have met since the last batch, for its records or for a check
  bool diverged_ = false;
  std::size_t meet_every_ = 1;
  double seconds_before_ = 0;
  PhaseClock::Nanoseconds start_ = 0;
  PhaseClock::Nanoseconds last_checkpoint_ = 0;
  nlohmann::ordered_json final_;
};

}  // namespace psgd
