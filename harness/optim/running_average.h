#pragma once

#include <cstdint>
#include <vector>

#include "compressors/scheme.h"
#include "harness/optim/named_tensor.h"

namespace psgd {

/// Paper: the mean of a model's state (weights and batch-norm buffers) over the steps since the
/// last reset: average += (value - average) / count.
class RunningAverage {
 public:
  /// `state` as from named_weights_and_buffers(). Keeps handles, not copies: convert the model
  /// before.
  explicit RunningAverage(std::vector<NamedTensor> state, bool fused = true);

  /// Forgets all; the next update() begins with the values as they are.
  void reset() { count_ = 0; }
  /// Takes the model's present values in. One pass: two arrays read, one written.
  void update();
  /// The number of updates since the last reset.
  std::int64_t count() const { return count_; }
  /// The mean of the i-th tensor of `state`; undefined values while count() is 0.
  const at::Tensor& average(std::size_t i) const { return averages_[i]; }

  /// Exchanges the model's values with the means; a second call restores both, bit for bit. Throws
  /// std::logic_error while count() is 0.
  void swap();

  /// "running_average.count" and "running_average.<name>". Not while swapped.
  void visit_state(StateVisitor& visitor);

 private:
  std::vector<NamedTensor> state_;
  std::vector<at::Tensor> averages_;
  std::int64_t count_ = 0;
  bool fused_;
};

/// The model holds its running average for as long as this lives.
class WithRunningAverage {
 public:
  explicit WithRunningAverage(RunningAverage& average) : average_(average) { average_.swap(); }
  ~WithRunningAverage() { average_.swap(); }
  WithRunningAverage(const WithRunningAverage&) = delete;
  WithRunningAverage& operator=(const WithRunningAverage&) = delete;

 private:
  RunningAverage& average_;
};

}  // namespace psgd
