#include "harness/optim/schedule.h"

#include <gtest/gtest.h>

#include "harness/optim/named_tensor.h"
#include "harness/optim/weight_decay.h"
#include "models/model.h"

namespace psgd {
namespace {

TEST(LearningRate, ThePapersSchedule) {
  const ScheduleOptions options;
  for (const auto& [epoch, expected] :
       std::vector<std::pair<double, double>>{{0, 0.1},
                                              {0.5, 0.25},
                                              {1, 0.4},
                                              {2, 0.7},
                                              {2.5, 0.85},
                                              {4, 1.3},
                                              {4 + 23.0 / 24, 1.5875},
                                              {5, 1.6},
                                              {6, 1.6},
                                              {149, 1.6},
                                              {149 + 23.0 / 24, 1.6},
                                              {150, 0.16},
                                              {249, 0.16},
                                              {250, 0.016},
                                              {299, 0.016}})
    EXPECT_NEAR(learning_rate(options, epoch), expected, 1e-15) << epoch;
}

TEST(LearningRate, OtherSchedules) {
  EXPECT_DOUBLE_EQ(learning_rate({.learning_rate = 0.2, .workers = 1, .decay_epochs = {}}, 0), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate({.learning_rate = 0.2, .workers = 1, .decay_epochs = {}}, 999),
                   0.2);
  EXPECT_DOUBLE_EQ(
      learning_rate({.workers = 4, .warmup_epochs = 0, .decay_epochs = {3}, .decay_factor = 2}, 0),
      0.4);
  EXPECT_DOUBLE_EQ(
      learning_rate({.workers = 4, .warmup_epochs = 0, .decay_epochs = {3}, .decay_factor = 2}, 3),
      0.2);
  // A decay within the warm-up.
  EXPECT_DOUBLE_EQ(learning_rate({.workers = 3, .warmup_epochs = 4, .decay_epochs = {2}}, 2), 0.02);
}

TEST(LearningRate, PerEpochAndPerBatch) {
  ScheduleOptions options{.workers = 16, .warmup_epochs = 1, .decay_epochs = {2}};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 9, 10), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 0, 10), 1.6);
  options.per_batch = true;
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 0, 10), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 0, 9, 10), 0.1 + 1.5 * 0.9);
  EXPECT_DOUBLE_EQ(learning_rate(options, 1, 9, 10), 1.6);
  EXPECT_DOUBLE_EQ(learning_rate(options, 2, 0, 10), 0.16);
}

std::vector<std::string> exempt(Implementation implementation) {
  const auto model = ModelRegistry::instance().make({.name = "resnet18", .base_width = 8});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named_parameters(*model))
    if (!has_weight_decay(implementation, name)) names.push_back(name);
  return names;
}

std::vector<std::string> block_batch_norms() {
  std::vector<std::string> names;
  for (int layer = 1; layer <= 4; ++layer)
    for (int block = 0; block < 2; ++block)
      for (int number = 1; number <= 2; ++number)
        for (const char* kind : {"weight", "bias"})
          names.push_back("layer" + std::to_string(layer) + "." + std::to_string(block) + ".bn" +
                          std::to_string(number) + "." + kind);
  return names;
}

TEST(WeightDecay, PaperExemptsTheBlocksBatchNorms) {
  EXPECT_EQ(exempt(Implementation::paper), block_batch_norms());
}

TEST(WeightDecay, PyTorchDdpExemptsTheTopLevelOneToo) {
  auto expected = block_batch_norms();
  expected.insert(expected.begin(), {"bn1.weight", "bn1.bias"});
  EXPECT_EQ(exempt(Implementation::ddp), expected);
}

TEST(WeightDecay, AwkwardNames) {
  for (const auto implementation : {Implementation::ddp, Implementation::paper}) {
    EXPECT_FALSE(has_weight_decay(implementation, "a.bn12.weight"));
    EXPECT_FALSE(has_weight_decay(implementation, "a.b.bn1.weight"));
    EXPECT_TRUE(has_weight_decay(implementation, "a.bn.weight"));
    EXPECT_TRUE(has_weight_decay(implementation, "a.xbn1.weight"));
    EXPECT_TRUE(has_weight_decay(implementation, "layer2.0.shortcut.1.weight"));
    EXPECT_TRUE(has_weight_decay(implementation, "linear.bias"));
    EXPECT_TRUE(has_weight_decay(implementation, ""));
  }
}

TEST(NamedTensors, BuffersWithoutCounters) {
  const auto model = ModelRegistry::instance().make({.name = "resnet18", .base_width = 8});
  EXPECT_EQ(named_parameters(*model).size(), 62u);
  const auto all = named_weights_and_buffers(*model);
  EXPECT_EQ(all.size(), 62u + 2 * 20u);
  EXPECT_EQ(all[62].name, "bn1.running_mean");
  model->to(torch::kFloat64);
  EXPECT_EQ(named_weights_and_buffers(*model).size(), all.size());
}

}  // namespace
}  // namespace psgd
