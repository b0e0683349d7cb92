// Times the schemes' own work, without communication, on ResNet-18's gradients, and the yardstick:
// one pass over memory that reads two arrays as large as all gradients and writes one.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <sstream>

#include "compressors/low_rank_kernels.h"
#include "compressors/scheme.h"
#include "tests/support/buckets.h"
#include "tests/support/resnet18_shapes.h"

namespace psgd::test {
namespace {

/// One worker: a sum over it is itself.
class AloneCollectives : public Collectives {
 public:
  struct Done : Request {
    void wait() override {}
  };
  int worker() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(at::Tensor&, Traffic) override {}
  std::unique_ptr<Request> start_all_reduce(at::Tensor&, Traffic) override {
    return std::make_unique<Done>();
  }
  void all_gather(const at::Tensor& values, at::Tensor& received, Traffic) override {
    received.view({-1}).copy_(values.view({-1}));
  }
  void broadcast(at::Tensor&, int, Traffic) override {}
};

/// The order of a DDP bucket: from the last parameter to the first.
Shapes reversed_shapes() {
  Shapes shapes = resnet18_shapes();
  std::reverse(shapes.begin(), shapes.end());
  return shapes;
}

void memory_pass(benchmark::State& state) {
  const std::int64_t n = flat_bucket(resnet18_shapes()).flat.numel();
  const at::Tensor a = at::rand({n});
  const at::Tensor b = at::rand({n});
  at::Tensor sum = at::zeros({n});
  const float* const x = a.data_ptr<float>();
  const float* const y = b.data_ptr<float>();
  float* const z = sum.data_ptr<float>();
  for (auto _ : state) {
    for (std::int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
    benchmark::ClobberMemory();
  }
}
BENCHMARK(memory_pass)->Unit(benchmark::kMillisecond);

struct Kernels {
  Kernels(std::int64_t rank, const std::string& name, bool memory)
      : bucket(flat_bucket(reversed_shapes())), kernels(make_low_rank_kernels(name)) {
    LowRankPolicy policy;
    policy.rank = rank;
    policy.error_memory = memory;
    policy.group_equal_shapes = true;
    policy.compress = [](std::int64_t dimensions, auto, auto, auto) { return dimensions >= 2; };
    bucket.flat.uniform_(-1, 1);
    state.prepare(bucket.gradients, policy, false);
    state.p.uniform_(-0.1, 0.1);
    state.q.uniform_(-0.1, 0.1);
  }
  Bucket bucket;
  LowRankState state;
  std::unique_ptr<LowRankKernels> kernels;
};

void encode(benchmark::State& state) {
  Kernels k(state.range(0), "fast", true);
  k.bucket.flat.mul_(1e-6);  // it is added again and again
  for (auto _ : state) k.kernels->encode(k.state, k.bucket);
}
void project(benchmark::State& state) {
  Kernels k(state.range(0), "fast", true);
  for (auto _ : state) k.kernels->project(k.state, k.bucket);
}
void decode(benchmark::State& state) {
  Kernels k(state.range(0), "fast", true);
  for (auto _ : state) k.kernels->decode(k.state, k.bucket);
}
BENCHMARK(encode)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK(project)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);
BENCHMARK(decode)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

void reduce(benchmark::State& state, Implementation implementation, const std::string& name,
            std::int64_t rank, const std::string& kernels) {
  const auto& entry = SchemeRegistry::instance().find(implementation, name);
  OptionValues given;
  if (rank > 0) {
    given["rank"] = rank;
    given["kernels"] = kernels;
  }
  const auto scheme = entry.make(SchemeRegistry::resolve(entry, given));
  Bucket bucket =
      flat_bucket(implementation == Implementation::ddp ? reversed_shapes() : resnet18_shapes());
  bucket.flat.uniform_(-1, 1);
  AloneCollectives collectives;
  PhaseClock clock;
  for (int i = 0; i < 3; ++i) scheme->reduce(bucket, collectives, clock);
  clock.reset();
  for (auto _ : state) scheme->reduce(bucket, collectives, clock);
  for (const Phase phase : {Phase::encode, Phase::orthogonalise, Phase::decode})
    state.counters[std::string(psgd::name(phase)) + "_ms"] =
        static_cast<double>(clock.sum(phase)) / 1e6 / static_cast<double>(state.iterations());
}

void register_one(const SchemeEntry& entry, std::int64_t rank, const std::string& kernels) {
  std::ostringstream title;
  title << "reduce/" << name(entry.implementation) << '/' << entry.name;
  if (rank > 0) title << '/' << rank << '/' << kernels;
  benchmark::RegisterBenchmark(title.str().c_str(), [=](benchmark::State& state) {
    reduce(state, entry.implementation, entry.name, rank, kernels);
  })->Unit(benchmark::kMillisecond);
}

void register_reduce() {
  for (const auto& entry : SchemeRegistry::instance().entries()) {
    if (entry.name != "powersgd") {
      register_one(entry, 0, "");
      continue;
    }
    for (const std::int64_t rank : {1, 2, 4}) {
      register_one(entry, rank, "fast");
      register_one(entry, rank, "reference");
    }
  }
}

}  // namespace
}  // namespace psgd::test

int main(int argc, char** argv) {
  at::set_num_threads(1);
  psgd::test::register_reduce();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
