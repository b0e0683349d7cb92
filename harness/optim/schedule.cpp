#include "harness/optim/schedule.h"

#include <algorithm>

namespace psgd {

double learning_rate(const ScheduleOptions& options, double epoch) {
  const double warmed =
      options.warmup_epochs > 0 ? std::min(epoch / options.warmup_epochs, 1.0) : 1.0;
  double rate = options.learning_rate * (1.0 + (options.workers - 1) * warmed);
  for (const double decay_epoch : options.decay_epochs)
    if (epoch >= decay_epoch) rate /= options.decay_factor;
  return rate;
}

double learning_rate(const ScheduleOptions& options, std::int64_t epoch, std::int64_t batch,
                     std::int64_t batches) {
  const double part =
      options.per_batch ? static_cast<double>(batch) / static_cast<double>(batches) : 0.0;
  return learning_rate(options, static_cast<double>(epoch) + part);
}

}  // namespace psgd
