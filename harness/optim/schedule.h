#pragma once

#include <cstdint>
#include <vector>

namespace psgd {

struct ScheduleOptions {
  double learning_rate = 0.1;  ///< per worker: where the warm-up begins
  int workers = 16;
  double warmup_epochs = 5;  ///< 0: none, the full rate from the start
  std::vector<double> decay_epochs = {150, 250};
  double decay_factor = 10;
  bool per_batch = false;  ///< the rate changes with each batch; otherwise with each epoch
};

/// The learning rate at a point of training, `epoch` counted from 0:
/// learning_rate (1 + (workers - 1) min(epoch / warmup_epochs, 1)), divided by decay_factor once
/// for each decay epoch reached.
double learning_rate(const ScheduleOptions& options, double epoch);

/// The learning rate of batch `batch` of `batches` (from 0) of an epoch: at epoch + batch / batches
/// if it changes per batch, as in Paper, else at the epoch's beginning, as in PyTorch DDP.
double learning_rate(const ScheduleOptions& options, std::int64_t epoch, std::int64_t batch,
                     std::int64_t batches);

}  // namespace psgd
