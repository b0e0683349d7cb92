#include "harness/train/trainer.h"

#include <spdlog/spdlog.h>

#include <bit>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

#include "harness/engine/device_sync.h"
#include "harness/error.h"
#include "harness/optim/named_tensor.h"
#include "harness/train/state_file.h"
#include "harness/train/stop_signal.h"
#include "harness/train/trainer_parts.h"
#include "harness/train/weights_check.h"

namespace psgd {
namespace {

/// Workers meet about this often to write their records and to hear of a stop.
constexpr double kMeetingSeconds = 1.0;
constexpr double kMostBatchesBetweenMeetings = 50;

double to_seconds(PhaseClock::Nanoseconds duration) { return static_cast<double>(duration) * 1e-9; }

}  // namespace

Trainer::Trainer(TrainerParts parts) : parts_(parts), log_(parts.collectives, parts.folder) {
  const Options& options = parts_.options;
  const Implementation implementation = implementation_from(options.implementation);
  model_ = make_model(options, parts_.dataset, parts_.device);
  parameters_ = model_->parameters();
  check_same_weights(parts_.collectives, parameters_, "at the start");
  scheme_ = make_scheme(options);
  engine_ = make_engine(options, *model_, *scheme_, parts_.collectives);
  sgd_ = std::make_unique<Sgd>(named_parameters(*model_),
                               SgdOptions{.implementation = implementation,
                                          .momentum = options.momentum,
                                          .weight_decay = options.weight_decay});
  if (implementation == Implementation::paper)
    running_average_ = std::make_unique<RunningAverage>(named_weights_and_buffers(*model_));
  loader_ =
      std::make_unique<TrainLoader>(parts_.dataset, loader_options(options, parts_.collectives));
  schedule_ = schedule_options(options);
}

Trainer::~Trainer() = default;

void Trainer::prepare_resume() {
  const auto type = parameters_.front().scalar_type();
  const auto images = torch::zeros({1, kChannels, kImageSide, kImageSide},
                                   torch::dtype(type).device(parts_.device));
  engine_->rehearse(images, torch::zeros({1}, torch::dtype(torch::kLong).device(parts_.device)));
}

double Trainer::seconds() const { return seconds_before_ + to_seconds(PhaseClock::now() - start_); }

Ending Trainer::run() {
  start_ = last_checkpoint_ = PhaseClock::now();
  for (; epoch_ < parts_.options.epochs; ++epoch_, batch_ = 0) {
    if (const Ending ending = train_epoch(); ending != Ending::finished) return ending;
    finish_epoch();
  }
  return diverged_ ? Ending::diverged : Ending::finished;
}

Ending Trainer::train_epoch() {
  const Options& options = parts_.options;
  if (batch_ == 0) {
    train_score_ = Score();
    if (running_average_ && epoch_ % options.running_average_reset_epochs == 0)
      running_average_->reset();
  }
  const std::int64_t batches = loader_->batches();
  loader_->start_epoch(static_cast<int>(epoch_), batch_);
  model_->train();
  while (batch_ < batches) {
    train_batch(batches);
    if (options.check_every > 0 && step_ % options.check_every == 0) {
      check_same_weights(
          parts_.collectives, parameters_,
          "after epoch " + std::to_string(epoch_ + 1) + ", batch " + std::to_string(batch_));
      met_outside_ = true;
    }
    if (!meeting_is_due(batches)) continue;
    const Meeting meeting = meet();
    diverged_ = diverged_ || !meeting.finite;
    if (diverged_ && options.on_divergence == "stop") return Ending::diverged;
    if (meeting.stop) {
      if (save_checkpoint) save_checkpoint();
      return Ending::interrupted;
    }
    if (meeting.checkpoint_due && save_checkpoint) {
      save_checkpoint();
      last_checkpoint_ = PhaseClock::now();
    }
  }
  return Ending::finished;
}

void Trainer::train_batch(std::int64_t batches) {
  const double rate = learning_rate(schedule_, epoch_, batch_, batches);
  clock_.reset();
  parts_.watchdog.enter("data");
  Batch batch;
  {
    const auto scope = clock_.scope(Phase::data);
    batch = loader_->next();
    batch.images = batch.images.to(parts_.device);
    batch.labels = batch.labels.to(parts_.device);
    synchronise(parts_.device);
  }
  BatchResult result;
  {
    const auto scope = clock_.scope(Phase::batch);
    parts_.watchdog.enter("forward and backward");
    // Workers that meet are released together, and those that share a core then wait for their
    // turn. Where the meeting was not part of a batch, meeting again in this one makes that wait
    // part of it, as everywhere else.
    if (std::exchange(met_outside_, false) && parts_.collectives.wait() == Wait::sleep)
      parts_.collectives.barrier();
    result = engine_->forward_backward(batch.images, batch.labels, clock_);
    parts_.watchdog.enter("optimiser step");
    {
      const auto step_scope = clock_.scope(Phase::step);
      std::vector<torch::Tensor> gradients;
      gradients.reserve(parameters_.size());
      for (const auto& parameter : parameters_) gradients.push_back(parameter.grad());
      sgd_->step(gradients, rate);
      synchronise(parts_.device);
    }
    if (running_average_) {
      const auto average_scope = clock_.scope(Phase::running_average);
      running_average_->update();
      synchronise(parts_.device);
    }
  }
  parts_.watchdog.enter("records");
  ++batch_;
  ++step_;
  const double loss = result.loss.item<double>();
  train_score_.add(result.logits, batch.labels, loss);
  log_.add({.epoch = epoch_ + 1,
            .batch = batch_,
            .step = step_,
            .learning_rate = rate,
            .loss = loss,
            .bits = parts_.collectives.gradient_bits(),
            .timed = !first_batch_,
            .phases = clock_.sums()});
  first_batch_ = false;
}

bool Trainer::meeting_is_due(std::int64_t batches) const {
  return batch_ == batches || log_.pending() >= meet_every_;
}

Meeting Trainer::meet() {
  const double minutes = parts_.options.checkpoint_every_minutes;
  Meeting mine;
  mine.stop = stop_signal() != 0;
  mine.checkpoint_due =
      minutes > 0 && to_seconds(PhaseClock::now() - last_checkpoint_) >= 60 * minutes;
  const Meeting meeting = log_.meet(mine);
  met_outside_ = true;
  // Formed from the same numbers on every worker, so all come to the next meeting at the same
  // batch.
  if (meeting.batch_seconds > 0)
    meet_every_ = static_cast<std::size_t>(
        std::clamp(kMeetingSeconds / meeting.batch_seconds, 1.0, kMostBatchesBetweenMeetings));
  return meeting;
}

void Trainer::finish_epoch() {
  const Options& options = parts_.options;
  parts_.watchdog.enter("epoch's end");
  Score train = train_score_;
  train.all_reduce(parts_.collectives);
  write_metrics("train", "last", train);
  final_["train_loss"] = train.mean_loss();
  const bool last = epoch_ + 1 == options.epochs;
  if (last || (epoch_ + 1) % options.test_every == 0) {
    engine_->prepare_test();
    test("last");
    if (running_average_) {
      const WithRunningAverage averaged(*running_average_);
      test("runavg");
    }
  }
  const bool due =
      options.checkpoint_every_epochs > 0 && (epoch_ + 1) % options.checkpoint_every_epochs == 0;
  if (due && !last && save_checkpoint) {
    // The checkpoint says where to go on: at the next epoch's start.
    ++epoch_;
    batch_ = 0;
    save_checkpoint();
    --epoch_;
    last_checkpoint_ = PhaseClock::now();
  }
}

void Trainer::test(const char* weights) {
  parts_.watchdog.enter("test");
  const torch::NoGradGuard no_grad;
  model_->eval();
  Score score;
  TestLoader images(parts_.dataset, test_loader_options(parts_.options, parts_.collectives));
  for (std::int64_t i = 0; i < images.batches(); ++i) {
    parts_.watchdog.enter("test");
    const Batch batch = images.batch(i);
    const torch::Tensor labels = batch.labels.to(parts_.device);
    const torch::Tensor logits = model_->forward(batch.images.to(parts_.device));
    score.add(logits, labels, torch::nn::functional::cross_entropy(logits, labels).item<double>());
  }
  score.all_reduce(parts_.collectives);
  write_metrics("test", weights, score);
  model_->train();
}

void Trainer::write_metrics(const char* split, const char* weights, const Score& score) {
  const bool is_test = std::string(split) == "test";
  if (is_test && std::string(weights) == "last") {
    final_["epoch"] = epoch_ + 1;
    final_["test_accuracy"] = score.accuracy();
    final_["test_loss"] = score.mean_loss();
    final_["test_top5"] = score.accuracy_top5();
  }
  if (parts_.folder == nullptr) return;
  const nlohmann::ordered_json line = {{"epoch", epoch_ + 1},
                                       {"step", step_},
                                       {"split", split},
                                       {"weights", weights},
                                       {"loss", score.mean_loss()},
                                       {"accuracy", score.accuracy()},
                                       {"top5", score.accuracy_top5()},
                                       {"correct", score.correct},
                                       {"correct_top5", score.correct_top5},
                                       {"count", score.count},
                                       {"bits", parts_.collectives.gradient_bits()},
                                       {"time", seconds()}};
  parts_.folder->append_metrics(line);
  spdlog::info("epoch {}/{}  {:<5} {:<6}  loss {:.4f}  accuracy {:.4f}  {:.0f} s", epoch_ + 1,
               parts_.options.epochs, split, weights, score.mean_loss(), score.accuracy(),
               seconds());
}

nlohmann::ordered_json Trainer::describe_model() const {
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  for (const auto& parameter : parameters_) {
    elements += parameter.numel();
    bytes += parameter.numel() * parameter.element_size();
  }
  return {{"name", parts_.options.model},
          {"base_width", parts_.options.base_width},
          {"parameters", parameters_.size()},
          {"elements", elements},
          {"bytes", bytes}};
}

nlohmann::ordered_json Trainer::summary() {
  const nlohmann::ordered_json phases = log_.phase_means();
  nlohmann::ordered_json bytes;
  std::int64_t calls = 0;
  for (const auto& [kind, key] : {std::pair{Traffic::gradient, "gradient"},
                                  {Traffic::buffer, "buffer"},
                                  {Traffic::metric, "metric"},
                                  {Traffic::check, "check"}}) {
    bytes[key] = parts_.collectives.traffic(kind).bytes;
    if (kind == Traffic::gradient) calls = parts_.collectives.traffic(kind).calls;
  }
  std::ostringstream weights;
  weights << std::hex << std::setfill('0') << std::setw(16)
          << static_cast<std::uint64_t>(hash_bits(parameters_));
  final_["weights_hash"] = weights.str();
  nlohmann::ordered_json counters = nlohmann::ordered_json::object();
  for (const auto& [key, value] : scheme_->counters()) counters[key] = value;
  return {
      {"batch_time", phases.contains("batch") ? phases["batch"]["mean"] : nlohmann::ordered_json()},
      {"batches_timed", log_.batches_timed()},
      {"phases", phases},
      {"totals",
       {{"steps", step_},
        {"bits", parts_.collectives.gradient_bits()},
        {"collectives", calls},
        {"bytes", bytes}}},
      {"final", final_},
      {"counters", counters}};
}

void Trainer::visit_state(StateVisitor& visitor) {
  visitor.integer("trainer.epoch", epoch_);
  visitor.integer("trainer.batch", batch_);
  visitor.integer("trainer.step", step_);
  visitor.integer("trainer.correct", train_score_.correct);
  visitor.integer("trainer.correct_top5", train_score_.correct_top5);
  visitor.integer("trainer.count", train_score_.count);
  const auto real = [&](const char* key, double& value) {
    auto bits = std::bit_cast<std::int64_t>(value);
    visitor.integer(key, bits);
    value = std::bit_cast<double>(bits);
  };
  real("trainer.loss", train_score_.loss);
  double elapsed = start_ == 0 ? seconds_before_ : seconds();
  real("trainer.seconds", elapsed);
  if (start_ == 0) seconds_before_ = elapsed;
  std::int64_t diverged = diverged_ ? 1 : 0;
  visitor.integer("trainer.diverged", diverged);
  diverged_ = diverged != 0;
  std::string final = final_.dump();
  visitor.text("trainer.final", final);
  final_ = nlohmann::ordered_json::parse(final);
  for (const auto kind : {Traffic::gradient, Traffic::buffer, Traffic::metric, Traffic::check}) {
    TrafficCount count = parts_.collectives.traffic(kind);
    const std::string key = "traffic." + std::to_string(static_cast<int>(kind));
    visitor.integer(key + ".calls", count.calls);
    visitor.integer(key + ".bytes", count.bytes);
    parts_.collectives.set_traffic(kind, count);
  }
  const torch::NoGradGuard no_grad;
  for (auto& named : model_->named_parameters())
    visit_in_place(visitor, "model." + named.key(), named.value());
  for (auto& named : model_->named_buffers())
    visit_in_place(visitor, "model." + named.key(), named.value());
  sgd_->visit_state(visitor);
  if (running_average_) running_average_->visit_state(visitor);
  PrefixedVisitor of_scheme(visitor, "scheme.");
  scheme_->visit_state(of_scheme);
  log_.visit_state(visitor);
}

}  // namespace psgd
