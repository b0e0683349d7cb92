#include "harness/optim/sgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/optim/state_map.h"

namespace psgd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

at::Tensor doubles(std::vector<double> values) { return torch::tensor(values, at::kDouble); }

// Expected values from PyTorch 1.13 in Python:
//   w = torch.tensor([1., -2., .5], dtype=torch.float64, requires_grad=True)
//   o = torch.optim.SGD([w], lr=0.5, momentum=0.9, nesterov=True, weight_decay=1e-2)
//   for s in range(3): w.grad = torch.tensor([0.1 * (s + 1), -0.2, 0.3 * s], dtype=torch.float64);
//   o.step(); print(w)
TEST(Sgd, PyTorchDdpStepsAsTorchOptimSgd) {
  const std::vector<std::vector<double>> expected = {
      {0.8955, -1.791, 0.49525},
      {0.65244275, -1.4948854999999999, 0.203520125},
      {0.2365227688749999, -1.1222405377499998, -0.49374157868749996}};
  for (const bool fused : {false, true}) {
    const auto w = doubles({1, -2, 0.5}).requires_grad_();
    Sgd sgd({{"w", w}},
            {.implementation = Implementation::ddp, .weight_decay = 1e-2, .fused = fused});
    for (int s = 0; s < 3; ++s) {
      sgd.step({doubles({0.1 * (s + 1), -0.2, 0.3 * s})}, 0.5);
      EXPECT_TRUE(w.allclose(doubles(expected[static_cast<std::size_t>(s)]), 1e-14, 1e-15)) << w;
    }
  }
}

TEST(Sgd, PaperStepsAlongGradientPlusMomentum) {
  for (const bool fused : {false, true}) {
    const auto w = doubles({1});
    Sgd sgd({{"w", w}},
            {.implementation = Implementation::paper, .weight_decay = 0.01, .fused = fused});
    double x = 1;
    double m = 0;
    for (int s = 0; s < 5; ++s) {
      const double g = 0.3 * s - 0.5 + 0.01 * x;
      m = s == 0 ? g : 0.9 * m + g;  // the original's first step
      x -= 0.1 * (g + m);
      sgd.step({doubles({0.3 * s - 0.5})}, 0.1);
      EXPECT_NEAR(w.item<double>(), x, 1e-15);
    }
  }
}

TEST(Sgd, WithoutMomentumItStepsAlongTheGradient) {
  for (const auto implementation : {Implementation::ddp, Implementation::paper}) {
    const auto w = doubles({1});
    Sgd sgd({{"w", w}}, {.implementation = implementation, .momentum = 0, .weight_decay = 0});
    sgd.step({doubles({2})}, 0.25);
    sgd.step({doubles({2})}, 0.25);
    EXPECT_EQ(w.item<double>(), 0);
  }
}

TEST(Sgd, WeightDecayFollowsTheNames) {
  const auto decays = doubles({1});
  const auto exempt = doubles({1});
  const auto top_level = doubles({1});
  Sgd sgd({{"conv1.weight", decays}, {"layer1.0.bn1.weight", exempt}, {"bn1.weight", top_level}},
          {.implementation = Implementation::paper, .momentum = 0, .weight_decay = 0.5});
  sgd.step({doubles({0}), doubles({0}), doubles({0})}, 1);
  EXPECT_EQ(decays.item<double>(), 0.5);
  EXPECT_EQ(exempt.item<double>(), 1);
  EXPECT_EQ(top_level.item<double>(), 0.5);
}

/// Fused and plain over shapes, types and layouts.
TEST(Sgd, FusedEqualsPlain) {
  torch::manual_seed(1);
  const std::vector<std::vector<std::int64_t>> shapes = {
      {}, {0}, {1}, {7}, {3, 5}, {16, 3, 3, 3}, {100, 1000}, {5, 0, 2}};
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (const auto implementation : {Implementation::ddp, Implementation::paper}) {
      for (const auto& shape : shapes) {
        const auto fused = torch::randn(shape, at::TensorOptions().dtype(type));
        const auto plain = fused.clone();
        Sgd fused_sgd({{"w", fused}}, {.implementation = implementation});
        Sgd plain_sgd({{"w", plain}}, {.implementation = implementation, .fused = false});
        for (int s = 0; s < 4; ++s) {
          const auto gradient = torch::randn(shape, at::TensorOptions().dtype(type));
          const auto before = gradient.clone();
          fused_sgd.step({gradient}, 0.3);
          plain_sgd.step({gradient}, 0.3);
          EXPECT_TRUE(gradient.equal(before));
        }
        const double tolerance = type == at::kFloat ? 2e-6 : 1e-14;
        EXPECT_TRUE(fused.allclose(plain, tolerance, tolerance)) << fused.sizes();
      }
    }
  }
}

TEST(Sgd, OtherLayoutsGiveTheSame) {
  torch::manual_seed(2);
  const auto start = torch::randn({4, 3, 2, 2}, at::kDouble);
  const auto gradient = torch::randn({4, 3, 2, 2}, at::kDouble);
  const auto last = at::MemoryFormat::ChannelsLast;
  const auto result = [&](at::Tensor w, const at::Tensor& g) {
    Sgd sgd({{"w", w}}, {});
    sgd.step({g}, 0.1);
    sgd.step({g}, 0.1);
    return w;
  };
  const auto expected = result(start.clone(), gradient);
  for (const auto& w : {start.clone(), start.contiguous(last).clone()})
    for (const auto& g :
         {gradient, gradient.contiguous(last), at::cat({gradient, gradient}, 1).narrow(1, 0, 3)})
      EXPECT_TRUE(result(w.clone(), g).allclose(expected, 1e-14, 1e-15));
}

TEST(Sgd, AnUndefinedGradientLeavesAllAlone) {
  const auto w = doubles({1});
  const auto v = doubles({1});
  Sgd sgd({{"w", w}, {"v", v}}, {});
  sgd.step({at::Tensor(), doubles({1})}, 0.1);
  EXPECT_EQ(w.item<double>(), 1);
  EXPECT_NE(v.item<double>(), 1);
}

TEST(Sgd, WrongGradientsAreRefused) {
  Sgd sgd({{"w", doubles({1, 2})}}, {});
  EXPECT_THROW(sgd.step({}, 0.1), std::invalid_argument);
  EXPECT_THROW(sgd.step({doubles({1})}, 0.1), std::invalid_argument);
}

TEST(Sgd, GoesOnFromSavedState) {
  torch::manual_seed(3);
  const auto gradient = torch::randn({5, 4});
  const auto straight = torch::ones({5, 4});
  Sgd sgd({{"w", straight}}, {});
  for (int s = 0; s < 3; ++s) sgd.step({gradient * s}, 0.1);
  StateMap state;
  sgd.visit_state(state);
  const auto resumed = straight.clone();
  for (int s = 3; s < 6; ++s) sgd.step({gradient * s}, 0.1);

  Sgd other({{"w", resumed}}, {});
  state.loading = true;
  other.visit_state(state);
  for (int s = 3; s < 6; ++s) other.step({gradient * s}, 0.1);
  EXPECT_TRUE(resumed.equal(straight));

  Sgd wrong({{"w", torch::ones({4, 5})}}, {});
  try {
    wrong.visit_state(state);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("momentum.w"), HasSubstr("[4, 5]"), HasSubstr("[5, 4]")));
  }
}

}  // namespace
}  // namespace psgd
