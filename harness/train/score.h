#pragma once

#include <torch/torch.h>

#include "harness/mpi/mpi_collectives.h"

namespace psgd {

/// How well logits match labels, summed over images; exact counts.
struct Score {
  double loss = 0;  ///< sum over images
  std::int64_t correct = 0;
  std::int64_t correct_top5 = 0;
  std::int64_t count = 0;

  /// Adds a batch: logits [B, classes], labels int64 [B], and the batch's mean loss.
  void add(const torch::Tensor& logits, const torch::Tensor& labels, double mean_loss);
  /// Sums over the workers.
  void all_reduce(Collectives& collectives);

  double mean_loss() const { return loss / static_cast<double>(count); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(count); }
  double accuracy_top5() const {
    return static_cast<double>(correct_top5) / static_cast<double>(count);
  }
};

}  // namespace psgd
