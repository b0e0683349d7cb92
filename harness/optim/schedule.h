#pragma once

#include <vector>

namespace psgd {

struct ScheduleOptions {
  double learning_rate = 0.1;  ///< per worker: where the warm-up begins
  int workers = 16;
  double warmup_epochs = 5;  ///< 0: none, the full rate from the start
  std::vector<double> decay_epochs = {150, 250};
  double decay_factor = 10;
};

/// The learning rate at a point of training, `epoch` counted from 0:
/// learning_rate (1 + (workers - 1) min(epoch / warmup_epochs, 1)), divided by decay_factor once for each
/// decay epoch reached. Paper calls it for each batch with epoch + batch / batches, PyTorch DDP once an
/// epoch with a whole number.
double learning_rate(const ScheduleOptions& options, double epoch);

}  // namespace psgd
