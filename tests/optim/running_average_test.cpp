#include "harness/optim/running_average.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "tests/optim/state_map.h"

namespace psgd {
namespace {

/// A parameter (of any shape) and a buffer that change from step to step.
struct Values {
  explicit Values(at::ScalarType type)
      : w(torch::empty({3, 5}, type)), b(torch::empty({1}, type)) {}
  void set(int step) const {
    torch::manual_seed(static_cast<std::uint64_t>(step));
    w.copy_(torch::randn({3, 5}, at::kDouble));
    b.fill_(step);
  }
  std::vector<NamedTensor> named() const { return {{"w", w}, {"b", b}}; }
  at::Tensor w;
  at::Tensor b;
};

at::Tensor mean_of_steps(const Values& values, int first, int last) {
  auto sum = torch::zeros({3, 5}, at::kDouble);
  for (int step = first; step <= last; ++step) {
    values.set(step);
    sum += values.w;
  }
  return sum / (last - first + 1);
}

TEST(RunningAverage, IsTheMeanSinceTheReset) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (const bool fused : {false, true}) {
      const Values values(type);
      RunningAverage average(values.named(), fused);
      for (int step = 0; step < 10; ++step) {
        if (step == 4) average.reset();
        values.set(step);
        average.update();
      }
      EXPECT_EQ(average.count(), 6);
      const auto found = average.average(0).to(at::kDouble);
      const double tolerance = type == at::kFloat ? 1e-6 : 1e-14;
      EXPECT_NEAR(average.average(1).to(at::kDouble).item<double>(), 6.5, 10 * tolerance);
      EXPECT_TRUE(found.allclose(mean_of_steps(values, 4, 9), tolerance, tolerance));
    }
  }
}

TEST(RunningAverage, ForgetsEvenInfinity) {
  const Values values(at::kFloat);
  RunningAverage average(values.named());
  values.w.fill_(INFINITY);
  average.update();
  average.reset();
  values.set(1);
  average.update();
  EXPECT_TRUE(average.average(0).equal(values.w));
}

TEST(RunningAverage, SwappingTwiceRestoresEveryBit) {
  const auto model = ModelRegistry::instance().make({.name = "resnet18", .base_width = 8});
  const auto state = named_weights_and_buffers(*model);
  RunningAverage average(state);
  EXPECT_THROW(average.swap(), std::logic_error);
  average.update();
  std::vector<at::Tensor> means;
  std::vector<at::Tensor> last;
  {
    const at::NoGradGuard no_gradient;
    for (const auto& item : state) {
      means.push_back(item.tensor.clone());
      item.tensor.add_(1);
      last.push_back(item.tensor.clone());
    }
  }
  {
    const WithRunningAverage guard(average);
    for (std::size_t i = 0; i < state.size(); ++i)
      ASSERT_TRUE(state[i].tensor.equal(means[i])) << state[i].name;
    model->eval();
    model->forward(torch::zeros({1, 3, 32, 32}));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    ASSERT_TRUE(state[i].tensor.equal(last[i])) << state[i].name;
    ASSERT_TRUE(average.average(i).equal(means[i])) << state[i].name;
  }
}

TEST(RunningAverage, GoesOnFromSavedState) {
  const Values values(at::kFloat);
  RunningAverage average(values.named());
  for (int step = 0; step < 3; ++step) {
    values.set(step);
    average.update();
  }
  StateMap state;
  average.visit_state(state);
  RunningAverage resumed(values.named());
  state.loading = true;
  resumed.visit_state(state);
  values.set(3);
  average.update();
  resumed.update();
  EXPECT_EQ(resumed.count(), 4);
  EXPECT_TRUE(resumed.average(0).equal(average.average(0)));
}

}  // namespace
}  // namespace psgd
