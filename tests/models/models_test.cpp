#include "models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "harness/data/sha256.h"
#include "models/add_relu.h"
#include "models/resnet18.h"

namespace psgd {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<Model> seeded(const ModelOptions& options, std::uint64_t seed = 1) {
  torch::manual_seed(seed);
  return ModelRegistry::instance().make(options);
}

/// A batch by formula, as in resnet18_reference.py.
torch::Tensor formula_images() {
  return torch::sin(torch::arange(4 * 3072, torch::kFloat64)).reshape({4, 3, 32, 32});
}

std::string description(const std::string& name, const torch::Tensor& tensor) {
  std::string text = name + " ";
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (d > 0) text += 'x';
    text += std::to_string(tensor.size(d));
  }
  Sha256 digest;
  digest.add(static_cast<const std::uint8_t*>(tensor.data_ptr()), tensor.nbytes());
  return text + " " + digest.hex();
}

std::vector<std::string> python_lines(int seed, int width) {
  const auto command = std::string(PSGD_PYTHON " " PSGD_RESNET18_REFERENCE " ") +
                       std::to_string(seed) + " " + std::to_string(width);
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char part[4096];
  for (std::size_t got; (got = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void expect_near(const std::string& line, const torch::Tensor& found, const char* what) {
  std::istringstream stream(line);
  std::vector<double> numbers{std::istream_iterator<double>(stream), {}};
  const auto expected = torch::tensor(numbers, torch::kFloat64);
  ASSERT_EQ(expected.numel(), found.numel()) << what;
  const auto error = ((expected - found).abs() / (1e-3 + expected.abs())).max().item<double>();
  EXPECT_LT(error, 1e-9) << what;
}

class ResNet18Parity : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ResNet18Parity, InitialBitsLogitsAndGradientsAreThoseOfPython) {
  const auto [seed, width] = GetParam();
  const auto lines = python_lines(seed, width);
  ASSERT_EQ(lines.size(), 62u + 3u);
  const auto model =
      seeded({.name = "resnet18", .base_width = width}, static_cast<std::uint64_t>(seed));
  const auto parameters = model->named_parameters();
  ASSERT_EQ(parameters.size(), 62u);
  for (std::size_t i = 0; i < 62; ++i)
    EXPECT_EQ(description(parameters[i].key(), parameters[i].value()), lines[i]);

  model->to(torch::kFloat64);
  const auto logits = model->forward(formula_images());
  torch::nn::functional::cross_entropy(logits, torch::tensor({3, 1, 4, 1})).backward();
  std::vector<torch::Tensor> norms;
  for (const auto& parameter : model->parameters()) norms.push_back(parameter.grad().norm());
  std::vector<torch::Tensor> sums;
  for (const auto& buffer : model->buffers())
    if (buffer.dim() > 0) sums.push_back(buffer.sum());  // not the counters
  expect_near(lines[62], logits.detach().flatten(), "logits");
  expect_near(lines[63], torch::stack(norms), "gradients' norms");
  expect_near(lines[64], torch::stack(sums), "buffers' sums");
}

INSTANTIATE_TEST_SUITE_P(SeedAndWidth, ResNet18Parity,
                         ::testing::Values(std::pair(1, 64), std::pair(2, 8), std::pair(7, 16)));

TEST(ResNet18, HasThePapersSize) {
  const auto model = seeded({.name = "resnet18"});
  std::int64_t elements = 0;
  std::int64_t matrices = 0;
  std::int64_t vector_elements = 0;
  for (const auto& parameter : model->parameters()) {
    elements += parameter.numel();
    if (parameter.dim() > 1)
      ++matrices;
    else
      vector_elements += parameter.numel();
  }
  EXPECT_EQ(model->parameters().size(), 62u);
  EXPECT_EQ(elements, 11173962);
  EXPECT_EQ(matrices, 21);
  EXPECT_EQ(vector_elements, 9610);
}

TEST(ResNet18, AllWidthsTrainInBothMemoryFormatsAlike) {
  for (const int width : {8, 16, 32}) {
    torch::Tensor losses[2];
    for (const bool channels_last : {false, true}) {
      const auto model = seeded({.name = "resnet18", .base_width = width});
      model->to(torch::kFloat64);
      auto images = formula_images();
      if (channels_last) images = images.contiguous(torch::MemoryFormat::ChannelsLast);
      const auto loss =
          torch::nn::functional::cross_entropy(model->forward(images), torch::tensor({3, 1, 4, 1}));
      loss.backward();
      for (const auto& item : model->named_parameters())
        EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
      losses[channels_last ? 1 : 0] = loss.detach();
    }
    EXPECT_NEAR(losses[0].item<double>(), losses[1].item<double>(), 1e-10);
  }
}

TEST(ResNet18, OneImageInEvaluation) {
  const auto model = seeded({.name = "resnet18", .base_width = 8, .classes = 7});
  model->eval();
  EXPECT_EQ(model->forward(torch::zeros({1, 3, 32, 32})).sizes(),
            (std::vector<std::int64_t>{1, 7}));
}

TEST(AddRelu, IsReluOfTheSum) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    for (const bool mixed_strides : {false, true}) {
      torch::manual_seed(5);
      const auto options = torch::TensorOptions().dtype(type).requires_grad(true);
      const auto a = torch::randn({2, 3, 5, 7}, options);
      const auto b = torch::randn({2, 3, 5, 7}, options);
      const auto weights = torch::randn({2, 3, 5, 7}, torch::TensorOptions().dtype(type));
      const auto other = mixed_strides ? b.contiguous(torch::MemoryFormat::ChannelsLast) : b * 1;
      const auto result = add_relu_(a * 1, other);
      const auto expected = torch::relu(a + b);
      EXPECT_TRUE(result.equal(expected));
      const auto gradients = torch::autograd::grad({(result * weights).sum()}, {a, b});
      const auto expected_gradients = torch::autograd::grad({(expected * weights).sum()}, {a, b});
      EXPECT_TRUE(gradients[0].equal(expected_gradients[0]));
      EXPECT_TRUE(gradients[1].equal(expected_gradients[1]));
    }
  }
}

TEST(Models, EveryRegisteredOneTrains) {
  for (const auto& entry : ModelRegistry::instance().entries()) {
    const auto model = seeded({.name = entry.name, .base_width = 8});
    const auto logits = model->forward(formula_images().to(torch::kFloat32));
    EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{4, 10})) << entry.name;
    logits.sum().backward();
    EXPECT_FALSE(entry.summary.empty());
  }
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Models, WrongOptionsAreRefused) {
  const auto make = [](const ModelOptions& options) {
    return [=] { ModelRegistry::instance().make(options); };
  };
  EXPECT_THAT(error_of(make({.name = "resnet81"})), HasSubstr("known: "));
  EXPECT_THAT(error_of(make({.name = "resnet18", .base_width = 0})), HasSubstr("base_width is 0"));
  EXPECT_THAT(error_of(make({.name = "mlp", .classes = -1})), HasSubstr("classes is -1"));
  EXPECT_THROW(ModelRegistry::instance().add({"mlp", "", {}}), std::logic_error);
}

}  // namespace
}  // namespace psgd
