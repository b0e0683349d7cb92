// Times what a batch consists of besides the network and the reduction: preparing images, the
// optimiser's step, the running average; beside one pass over memory as large as all parameters of
// ResNet-18. One thread.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "harness/data/augment.h"
#include "harness/data/dataset.h"
#include "harness/optim/running_average.h"
#include "harness/optim/sgd.h"
#include "tests/support/resnet18_shapes.h"

namespace psgd::test {
namespace {

/// Random crops and flips, as TrainLoader's background thread makes them. items_per_second: images.
void prepare_images(benchmark::State& state) {
  constexpr std::int64_t images = 1024;
  const Dataset dataset = load_dataset(
      {.name = "synthetic", .directory = {}, .train_images = images, .test_images = 16});
  const auto table = normalisation_table<float>(dataset);
  std::vector<float> output(128 * 3 * 32 * 32);
  std::int64_t position = 0;
  for (auto _ : state) {
    write_image(dataset.train, position % images, random_crop(1, 0, position), table,
                state.range(0) != 0, output.data() + position % 128 * 3 * 32 * 32);
    ++position;
  }
  state.SetItemsProcessed(position);
}
BENCHMARK(prepare_images)->ArgName("channels_last")->Arg(0)->Arg(1);

std::vector<NamedTensor> parameters() {
  std::vector<NamedTensor> parameters;
  for (const auto& shape : resnet18_shapes())
    parameters.push_back(
        {"layer" + std::to_string(parameters.size()) + ".weight", torch::randn(shape)});
  return parameters;
}

void memory_pass(benchmark::State& state) {
  std::int64_t elements = 0;
  for (const auto& parameter : parameters()) elements += parameter.tensor.numel();
  const at::Tensor a = at::rand({elements});
  const at::Tensor b = at::rand({elements});
  at::Tensor sum = at::zeros({elements});
  for (auto _ : state) at::add_out(sum, a, b);
}
BENCHMARK(memory_pass)->Unit(benchmark::kMillisecond);

void optimiser_step(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  const auto given = parameters();
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : given) gradients.push_back(torch::randn(parameter.tensor.sizes()));
  Sgd sgd(given, {.fused = state.range(0) != 0});
  for (auto _ : state) sgd.step(gradients, 1e-6);
}
BENCHMARK(optimiser_step)->ArgName("fused")->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond);

void running_average(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  RunningAverage average(parameters());
  for (auto _ : state) average.update();
}
BENCHMARK(running_average)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace psgd::test

int main(int argc, char** argv) {
  at::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
