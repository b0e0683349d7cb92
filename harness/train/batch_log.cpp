#include "harness/train/batch_log.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace psgd {
namespace {

constexpr std::size_t kHeader = 2;               // stop, checkpoint due
constexpr std::size_t kPerRecord = kPhases + 1;  // phases, loss

std::vector<std::int64_t> gather(MpiCollectives& collectives, std::vector<std::int64_t> mine) {
  const auto elements = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(collectives.size()));
  const at::Tensor send = at::from_blob(mine.data(), {elements}, at::kLong);
  at::Tensor receive = at::from_blob(all.data(), {elements * collectives.size()}, at::kLong);
  collectives.all_gather(send, receive, Traffic::metric);
  return all;
}

std::int64_t to_microseconds(std::int64_t nanoseconds) { return (nanoseconds + 500) / 1000; }

}  // namespace

void BatchLog::add(const BatchRecord& record) {
  pending_.push_back(record);
  if (!record.timed) return;
  ++timed_;
  for (std::size_t phase = 0; phase < kPhases; ++phase) sums_[phase] += record.phases[phase];
}

Meeting BatchLog::meet(const Meeting& mine) {
  std::vector<std::int64_t> message = {mine.stop ? 1 : 0, mine.checkpoint_due ? 1 : 0};
  for (const auto& record : pending_) {
    message.insert(message.end(), record.phases.begin(), record.phases.end());
    message.push_back(std::bit_cast<std::int64_t>(record.loss));
  }
  const std::size_t per_worker = message.size();
  const auto everyones = gather(collectives_, std::move(message));
  Meeting meeting;
  meeting.checkpoint_due = everyones[1] != 0;
  double nanoseconds = 0;
  for (std::size_t worker = 0; worker < everyones.size() / per_worker; ++worker) {
    const std::int64_t* its = everyones.data() + worker * per_worker;
    meeting.stop = meeting.stop || its[0] != 0;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const std::int64_t* record = its + kHeader + i * kPerRecord;
      nanoseconds += static_cast<double>(record[static_cast<std::size_t>(Phase::batch)]);
      meeting.finite = meeting.finite && std::isfinite(std::bit_cast<double>(record[kPhases]));
    }
  }
  if (!pending_.empty())
    meeting.batch_seconds =
        nanoseconds * 1e-9 / static_cast<double>(pending_.size()) / collectives_.size();
  if (folder_ != nullptr) write(everyones, per_worker);
  pending_.clear();
  return meeting;
}

void BatchLog::write(const std::vector<std::int64_t>& everyones, std::size_t per_worker) {
  std::vector<nlohmann::ordered_json> lines;
  const std::size_t workers = everyones.size() / per_worker;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const auto& record = pending_[i];
    const auto of = [&](std::size_t worker, std::size_t item) {
      return everyones[worker * per_worker + kHeader + i * kPerRecord + item];
    };
    double loss = 0;
    for (std::size_t worker = 0; worker < workers; ++worker)
      loss += std::bit_cast<double>(of(worker, kPhases));
    nlohmann::ordered_json times;
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      std::vector<std::int64_t> per_phase(workers);
      for (std::size_t worker = 0; worker < workers; ++worker)
        per_phase[worker] = to_microseconds(of(worker, phase));
      // A phase that this implementation and scheme do not have is left out.
      if (std::any_of(per_phase.begin(), per_phase.end(), [](auto time) { return time != 0; }))
        times[std::string(psgd::name(static_cast<Phase>(phase)))] = per_phase;
    }
    lines.push_back({{"epoch", record.epoch},
                     {"batch", record.batch},
                     {"step", record.step},
                     {"learning_rate", record.learning_rate},
                     {"loss", loss / static_cast<double>(workers)},
                     {"bits", record.bits},
                     {"timed", record.timed},
                     {"microseconds", times}});
  }
  folder_->append_batches(lines);
}

nlohmann::ordered_json BatchLog::phase_means() {
  const auto everyones = gather(collectives_, {sums_.begin(), sums_.end()});
  nlohmann::ordered_json means;
  if (timed_ == 0) return means;
  const auto workers = static_cast<std::size_t>(collectives_.size());
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    double least = INFINITY;
    double most = 0;
    double sum = 0;
    for (std::size_t worker = 0; worker < workers; ++worker) {
      const double mean = static_cast<double>(everyones[worker * kPhases + phase]) * 1e-9 /
                          static_cast<double>(timed_);
      least = std::min(least, mean);
      most = std::max(most, mean);
      sum += mean;
    }
    if (most > 0)
      means[std::string(psgd::name(static_cast<Phase>(phase)))] = {
          {"min", least}, {"mean", sum / static_cast<double>(workers)}, {"max", most}};
  }
  return means;
}

void BatchLog::visit_state(StateVisitor& visitor) {
  visitor.integer("batch_log.timed", timed_);
  for (std::size_t phase = 0; phase < kPhases; ++phase)
    visitor.integer("batch_log." + std::string(psgd::name(static_cast<Phase>(phase))),
                    sums_[phase]);
}

}  // namespace psgd
