// What must hold for every registered scheme, whatever its algorithm, over numbers of workers and
// shapes. A new scheme is tested here without a line of its own; give it a row in variants() for
// options worth a test.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "compressors/elementwise.h"
#include "compressors/scheme.h"
#include "tests/support/buckets.h"
#include "tests/support/golden_gradients.h"
#include "tests/support/saved_state.h"
#include "tests/support/thread_collectives.h"

namespace psgd::test {
namespace {

struct Variant {
  const SchemeEntry* entry;
  OptionValues options;
  std::string title;

  std::unique_ptr<Scheme> make() const {
    return entry->make(SchemeRegistry::resolve(*entry, options));
  }
};

std::vector<OptionValues> options_worth_a_test(const SchemeEntry& entry) {
  std::vector<OptionValues> result = {{}};
  if (entry.name != "powersgd") return result;
  for (const std::int64_t rank : {1, 2, 3, 8}) {
    OptionValues options = {{"rank", rank}};
    // A minimum rate of 0 compresses every matrix, however small.
    if (entry.implementation == Implementation::ddp) options["min_compression_rate"] = 0.0;
    result.push_back(options);
    options["kernels"] = std::string("reference");
    result.push_back(options);
  }
  const bool ddp = entry.implementation == Implementation::ddp;
  result.push_back({{ddp ? "warm_start" : "reuse_query", false}, {"rank", std::int64_t{2}}});
  if (ddp) result.push_back({{"batch_tensors_with_same_shape", true}, {"rank", std::int64_t{2}}});
  return result;
}

std::vector<Variant> variants() {
  std::vector<Variant> result;
  for (const auto& entry : SchemeRegistry::instance().entries())
    for (const auto& options : options_worth_a_test(entry)) {
      std::ostringstream title;
      title << name(entry.implementation) << ", " << entry.name;
      for (const auto& [key, value] : options) {
        title << ", " << key << " ";
        std::visit([&](const auto& v) { title << v; }, value);
      }
      result.push_back({&entry, options, title.str()});
    }
  return result;
}

const std::vector<Shapes> kShapeLists = {
    {{},
     {0},
     {5},
     {1, 7},
     {7, 1},
     {3, 2},
     {2, 3},
     {1, 1},
     {4, 0},
     {8, 4, 3, 3},
     {17, 40},
     {8, 4, 3, 3}},
    {{}},
    {{0}},
    {{12, 30}},
};

/// One worker's view of a step.
struct Step {
  std::vector<at::Tensor> input;  // gradient + memory before
  std::vector<at::Tensor> output;
  std::vector<at::Tensor> memory;
};

using Gradient = std::function<at::Tensor(const std::vector<std::int64_t>& shape, int tensor,
                                          int worker, int step)>;

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const auto& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

void fill(Bucket& bucket, const Shapes& shapes, const Gradient& gradient, int worker, int step) {
  for (std::size_t k = 0; k < shapes.size(); ++k)
    bucket.gradients[k].copy_(gradient(shapes[k], static_cast<int>(k), worker, step));
}

Step run_step(Scheme& scheme, Bucket& bucket, Collectives& collectives) {
  PhaseClock clock;
  Step step;
  step.input = copies(bucket.gradients);
  const auto before = scheme.memory(bucket.index);
  for (std::size_t k = 0; k < before.size(); ++k) step.input[k].add_(before[k]);
  scheme.reduce(bucket, collectives, clock);
  step.output = copies(bucket.gradients);
  step.memory = copies(scheme.memory(bucket.index));
  return step;
}

/// result[worker][step]
std::vector<std::vector<Step>> run(const Variant& variant, int workers, const Shapes& shapes,
                                   int steps, const Gradient& gradient,
                                   at::ScalarType type = at::kFloat) {
  std::vector<std::vector<Step>> result(static_cast<std::size_t>(workers));
  run_workers(workers, [&](ThreadCollectives& collectives) {
    const auto scheme = variant.make();
    Bucket bucket =
        collectives.worker() % 2 == 0 ? flat_bucket(shapes, type) : separate_bucket(shapes, type);
    for (int t = 0; t < steps; ++t) {
      fill(bucket, shapes, gradient, collectives.worker(), t);
      result[static_cast<std::size_t>(collectives.worker())].push_back(
          run_step(*scheme, bucket, collectives));
    }
  });
  return result;
}

double largest(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0 : tensor.abs().max().item<double>();
}

bool all_finite(const std::vector<at::Tensor>& tensors) {
  for (const auto& tensor : tensors)
    if (!at::isfinite(tensor).all().item<bool>()) return false;
  return true;
}

/// Half precision is the only loss that no memory makes up for.
double tolerance(const Variant& variant) { return variant.entry->name == "fp16" ? 2e-3 : 1e-5; }

at::Tensor golden(const std::vector<std::int64_t>& shape, int k, int w, int t) {
  return golden_gradient(shape, k, w, t);
}

void check_workers_agree(const std::vector<std::vector<Step>>& runs) {
  for (std::size_t w = 1; w < runs.size(); ++w)
    for (std::size_t t = 0; t < runs[w].size(); ++t)
      for (std::size_t k = 0; k < runs[w][t].output.size(); ++k)
        ASSERT_TRUE(at::equal(runs[w][t].output[k], runs[0][t].output[k]))
            << "worker " << w << ", step " << t << ", tensor " << k;
}

void check_nothing_is_lost(const std::vector<std::vector<Step>>& runs, double allowed) {
  for (std::size_t t = 0; t < runs[0].size(); ++t)
    for (std::size_t k = 0; k < runs[0][t].output.size(); ++k) {
      at::Tensor in = at::zeros_like(runs[0][t].output[k]);
      at::Tensor out = at::zeros_like(in);
      for (const auto& worker : runs) {
        in.add_(worker[t].input[k]);
        out.add_(worker[t].output[k]);
        if (!worker[t].memory.empty()) out.add_(worker[t].memory[k]);
      }
      const double scale = 0.5 + largest(in);
      ASSERT_LE(largest(in - out), allowed * scale) << "step " << t << ", tensor " << k;
    }
}

constexpr int kSteps = 6;

TEST(Invariants, WorkersAgreeAndNothingIsLost) {
  for (const auto& variant : variants())
    for (const auto& shapes : kShapeLists)
      for (const int workers : {1, 2, 3, 4, 5}) {
        SCOPED_TRACE(variant.title + ", " + std::to_string(workers) + " workers, " +
                     std::to_string(shapes.size()) + " tensors");
        const auto runs = run(variant, workers, shapes, kSteps, golden);
        check_workers_agree(runs);
        check_nothing_is_lost(runs, tolerance(variant));
      }
}

TEST(Invariants, HoldInDoublePrecision) {
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant.title);
    const auto runs = run(variant, 3, kShapeLists[0], kSteps, golden, at::kDouble);
    check_workers_agree(runs);
    check_nothing_is_lost(runs, variant.entry->name == "fp16" ? tolerance(variant) : 1e-13);
  }
}

TEST(Invariants, OutputDependsOnTheMeanAlone) {
  const Shapes shapes = {{5}, {12, 30}, {8, 4, 3, 3}};
  constexpr int workers = 4;
  const Gradient mean = [](const std::vector<std::int64_t>& shape, int k, int, int t) {
    at::Tensor sum = at::zeros(shape);
    for (int w = 0; w < workers; ++w) sum.add_(golden_gradient(shape, k, w, t));
    return sum / workers;
  };
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant.title);
    const auto own = run(variant, workers, shapes, kSteps, golden);
    const auto same = run(variant, workers, shapes, kSteps, mean);
    for (int t = 0; t < kSteps; ++t)
      for (std::size_t k = 0; k < shapes.size(); ++k)
        EXPECT_LE(largest(own[0][t].output[k] - same[0][t].output[k]),
                  std::max(1e-4, tolerance(variant)))
            << "step " << t << ", tensor " << k;
  }
}

/// The gradient of step t, of which some are zero, is a matrix of rank 1 that does not change.
TEST(Invariants, ZeroGradientsDoNoLastingHarm) {
  const Shapes shapes = {{6}, {12, 30}, {8, 4, 3, 3}};
  struct Zeros {
    const char* title;
    std::function<bool(int worker, int step)> is_zero;
  };
  const Zeros patterns[] = {
      {"all workers at first", [](int, int t) { return t < 6; }},
      {"all workers in between", [](int, int t) { return t >= 4 && t < 12; }},
      {"one worker always", [](int w, int) { return w == 1; }},
      {"one worker in between", [](int w, int t) { return w == 0 && t >= 3 && t < 8; }},
  };
  constexpr int workers = 3;
  constexpr int steps = 40;
  for (const auto& pattern : patterns) {
    const Gradient gradient = [&](const std::vector<std::int64_t>& shape, int k, int w, int t) {
      if (pattern.is_zero(w, t)) return at::zeros(shape);
      const at::Tensor full = golden_gradient(shape, k, 0, 0);
      if (shape.size() < 2) return full;
      const at::Tensor matrix = full.view({shape[0], -1});
      return (matrix.narrow(1, 0, 1) * matrix.narrow(0, 0, 1)).view(shape).contiguous();
    };
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant.title + ", " + pattern.title);
      const auto runs = run(variant, workers, shapes, steps, gradient);
      check_workers_agree(runs);
      for (const auto& step : runs[0])
        ASSERT_TRUE(all_finite(step.output) && all_finite(step.memory));
      for (std::size_t k = 0; k < shapes.size(); ++k) {
        at::Tensor mean = at::zeros(shapes[k]);
        for (int w = 0; w < workers; ++w)
          mean.add_(gradient(shapes[k], static_cast<int>(k), w, steps - 1));
        mean.div_(workers);
        const at::Tensor error = runs[0].back().output[k] - mean;
        EXPECT_LE(error.norm().item<double>(), 0.02 * mean.norm().item<double>()) << "tensor " << k;
      }
    }
  }
}

/// PyTorch DDP rebuilds its buckets once, after the first step: other tensors, in another order.
TEST(Invariants, BucketsMayBeRebuiltAfterTheFirstStep) {
  const Shapes before = {{9, 14}, {5}};
  const Shapes after = {{20, 3}, {5}, {9, 14}};
  for (const auto& variant : variants()) {
    if (variant.entry->implementation != Implementation::ddp) continue;
    SCOPED_TRACE(variant.title);
    std::vector<std::vector<Step>> runs(2);
    run_workers(2, [&](ThreadCollectives& collectives) {
      const auto scheme = variant.make();
      for (int t = 0; t < kSteps; ++t) {
        const Shapes& shapes = t == 0 ? before : after;
        Bucket bucket = separate_bucket(shapes);
        fill(bucket, shapes, golden, collectives.worker(), t);
        runs[static_cast<std::size_t>(collectives.worker())].push_back(
            run_step(*scheme, bucket, collectives));
      }
    });
    check_workers_agree(runs);
    check_nothing_is_lost(runs, tolerance(variant));
  }
}

std::int64_t size_of_state(Scheme& scheme) {
  SavedState state;
  state.take(scheme);
  std::int64_t size = 0;
  for (const auto& [key, tensor] : state.tensors) size += tensor.numel();
  return size + static_cast<std::int64_t>(state.tensors.size() + state.integers.size() +
                                          state.texts.size());
}

TEST(Invariants, StateDoesNotGrow) {
  const Shapes shapes = {{5}, {9, 14}};
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant.title);
    run_workers(2, [&](ThreadCollectives& collectives) {
      const auto scheme = variant.make();
      Bucket bucket = flat_bucket(shapes);
      std::int64_t early = 0;
      for (int t = 0; t < 200; ++t) {
        fill(bucket, shapes, golden, collectives.worker(), t);
        run_step(*scheme, bucket, collectives);
        if (t == 2) early = size_of_state(*scheme);
      }
      EXPECT_EQ(size_of_state(*scheme), early);
    });
  }
}

/// Two buckets a step, so that state by bucket is covered.
std::vector<at::Tensor> run_two_buckets(Scheme& scheme, Collectives& collectives, int begin,
                                        int end) {
  const Shapes shapes[] = {{{5}, {9, 14}, {20, 3}}, {{11, 12}, {}}};
  std::vector<at::Tensor> outputs;
  for (int t = begin; t < end; ++t)
    for (int b = 0; b < 2; ++b) {
      Bucket bucket = flat_bucket(shapes[b]);
      bucket.index = b;
      bucket.is_last = b == 1;
      fill(bucket, shapes[b], golden, collectives.worker(), t);
      const Step step = run_step(scheme, bucket, collectives);
      outputs.insert(outputs.end(), step.output.begin(), step.output.end());
      outputs.insert(outputs.end(), step.memory.begin(), step.memory.end());
    }
  return outputs;
}

std::vector<at::Tensor> run_list(Scheme& scheme, Collectives& collectives, int begin, int end) {
  const Shapes shapes = {{5}, {9, 14}, {20, 3}, {}};
  std::vector<at::Tensor> outputs;
  for (int t = begin; t < end; ++t) {
    Bucket bucket = separate_bucket(shapes);
    fill(bucket, shapes, golden, collectives.worker(), t);
    const Step step = run_step(scheme, bucket, collectives);
    outputs.insert(outputs.end(), step.output.begin(), step.output.end());
    outputs.insert(outputs.end(), step.memory.begin(), step.memory.end());
  }
  return outputs;
}

TEST(Invariants, ContinueFromASavedStateWithTheSameBits) {
  for (const auto& variant : variants()) {
    const auto run_some =
        variant.entry->implementation == Implementation::ddp ? run_two_buckets : run_list;
    for (const int saved_after : {0, 1, 2, 3, 5}) {
      SCOPED_TRACE(variant.title + ", saved after " + std::to_string(saved_after));
      run_workers(2, [&](ThreadCollectives& collectives) {
        const auto first = variant.make();
        run_some(*first, collectives, 0, saved_after);
        SavedState state;
        state.take(*first);
        const auto second = variant.make();
        state.give(*second);
        const auto expected = run_some(*first, collectives, saved_after, 8);
        const auto actual = run_some(*second, collectives, saved_after, 8);
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i)
          EXPECT_TRUE(at::equal(actual[i], expected[i])) << i;
        EXPECT_EQ(second->counters(), first->counters());
      });
    }
  }
}

}  // namespace
}  // namespace psgd::test
