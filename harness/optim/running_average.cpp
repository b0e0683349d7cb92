#include "harness/optim/running_average.h"

#include <ATen/Parallel.h>

#include <stdexcept>

namespace psgd {
namespace {

template <typename T>
void move_towards(T* __restrict average, const T* __restrict value, std::int64_t count, T share) {
  for (std::int64_t i = 0; i < count; ++i) average[i] += (value[i] - average[i]) * share;
}

void update_fused(at::Tensor& average, const at::Tensor& value, double share) {
  AT_DISPATCH_FLOATING_TYPES(average.scalar_type(), "running_average_update", [&] {
    auto* a = average.data_ptr<scalar_t>();
    const auto* v = value.data_ptr<scalar_t>();
    at::parallel_for(
        0, average.numel(), kElementsPerTask, [&](std::int64_t begin, std::int64_t end) {
          move_towards(a + begin, v + begin, end - begin, static_cast<scalar_t>(share));
        });
  });
}

}  // namespace

RunningAverage::RunningAverage(std::vector<NamedTensor> state, bool fused)
    : state_(std::move(state)), fused_(fused) {
  const at::NoGradGuard no_gradient;
  for (const auto& item : state_) averages_.push_back(at::zeros_like(item.tensor));
}

void RunningAverage::update() {
  const at::NoGradGuard no_gradient;
  ++count_;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    auto& average = averages_[i];
    const auto& value = state_[i].tensor;
    // A copy, not a step from the old mean: what was forgotten may have been infinite.
    if (count_ == 1)
      average.copy_(value);
    else if (fused_ && same_dense_layout({average, value}))
      update_fused(average, value, 1.0 / static_cast<double>(count_));
    else
      average.add_(value.sub(average), 1.0 / static_cast<double>(count_));
  }
}

void RunningAverage::swap() {
  if (count_ == 0)
    throw std::logic_error("the running average was asked for before its first update");
  const at::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const auto value = state_[i].tensor.clone();
    state_[i].tensor.copy_(averages_[i]);
    averages_[i].copy_(value);
  }
}

void RunningAverage::visit_state(StateVisitor& visitor) {
  visitor.integer("running_average.count", count_);
  for (std::size_t i = 0; i < state_.size(); ++i)
    visit_in_place(visitor, "running_average." + state_[i].name, averages_[i]);
}

}  // namespace psgd
