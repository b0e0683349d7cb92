// The schemes against vectors made with PyTorch's own hooks and with the paper's own code, on 4
// workers.
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

#include "compressors/ddp_powersgd.h"
#include "compressors/paper_powersgd.h"
#include "compressors/scheme.h"
#include "tests/support/golden_gradients.h"
#include "tests/support/saved_state.h"
#include "tests/support/thread_collectives.h"

namespace psgd::test {
namespace {

using nlohmann::json;

constexpr int kWorkers = 4;
constexpr int kGoldenSteps = 5;

json read_golden(const std::string& file) {
  std::ifstream stream(std::string(PSGD_GOLDEN_DIR) + "/" + file);
  return json::parse(stream);
}

/// Any nesting of lists, flattened.
at::Tensor numbers(const json& values) {
  std::vector<float> result;
  const std::function<void(const json&)> collect = [&](const json& value) {
    if (!value.is_array()) return result.push_back(value.get<float>());
    for (const auto& element : value) collect(element);
  };
  collect(values);
  return at::tensor(result, at::kFloat);
}

void expect_within(const at::Tensor& actual, const at::Tensor& expected, double tolerance,
                   const std::string& what) {
  ASSERT_EQ(actual.numel(), expected.numel()) << what;
  if (actual.numel() == 0) return;
  EXPECT_LE((actual.reshape(-1) - expected).abs().max().item<double>(), tolerance) << what;
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  constexpr double tolerance = 1e-5;  // of the largest element of the expected tensor
  const double scale = expected.numel() > 0 ? expected.abs().max().item<double>() : 0;
  expect_within(actual, expected, tolerance * std::max(scale, 1e-30), what);
}

/// The unit in the last place of half-precision numbers from 0.5 to 1: the gradients and their sums
/// reach 0.5, and PyTorch's order of summation differs from ours.
constexpr double kHalfUnit = 1.0 / 2048;

std::vector<std::vector<std::int64_t>> shapes_of(const json& golden) {
  return golden.at("shapes").get<std::vector<std::vector<std::int64_t>>>();
}

/// The gradients of the tensors `order`, in one piece of memory as in a DDP bucket.
Bucket make_bucket(const std::vector<std::vector<std::int64_t>>& shapes,
                   const std::vector<int>& order, int worker, int step, bool flat) {
  Bucket bucket;
  std::vector<at::Tensor> parts;
  for (const int k : order) parts.push_back(golden_gradient(shapes[k], k, worker, step));
  if (!flat) {
    bucket.gradients = parts;
    return bucket;
  }
  std::vector<at::Tensor> ravelled;
  for (const auto& part : parts) ravelled.push_back(part.view({-1}));
  bucket.flat = at::cat(ravelled);
  std::int64_t offset = 0;
  for (const auto& part : parts) {
    bucket.gradients.push_back(bucket.flat.narrow(0, offset, part.numel()).view(part.sizes()));
    offset += part.numel();
  }
  return bucket;
}

/// [rank, columns] blocks as the scheme keeps Q, to [columns, rank] blocks as PyTorch does.
at::Tensor q_as_in_pytorch(const at::Tensor& q, std::int64_t rank) {
  // The golden network's compressed matrices, in the order of their Q: linear.weight, then both 16
  // x 72.
  const std::vector<std::int64_t> all = q.numel() == 187 * rank
                                            ? std::vector<std::int64_t>{16, 72, 72, 27}
                                            : std::vector<std::int64_t>{72, 72};
  std::vector<at::Tensor> parts;
  std::int64_t offset = 0;
  for (const auto columns : all) {
    const auto size = columns * rank;
    parts.push_back(q.narrow(0, offset, size).view({rank, columns}).t().reshape(-1));
    offset += size;
  }
  EXPECT_EQ(offset, q.numel());
  return at::cat(parts);
}

struct Outcome {
  std::vector<std::vector<at::Tensor>> outputs;  // by step, by place in the bucket
  std::vector<std::int64_t> bits;                // by step
  SavedState state;
  std::vector<at::Tensor> memory;
};

using MakeScheme = std::function<std::unique_ptr<Scheme>()>;

std::vector<Outcome> run(const json& golden, const MakeScheme& make,
                         const std::function<std::vector<int>(int step)>& order, bool flat) {
  std::vector<Outcome> outcomes(kWorkers);
  const auto shapes = shapes_of(golden);
  run_workers(kWorkers, [&](ThreadCollectives& collectives) {
    auto& outcome = outcomes[static_cast<std::size_t>(collectives.worker())];
    const auto scheme = make();
    PhaseClock clock;
    for (int t = 0; t < kGoldenSteps; ++t) {
      Bucket bucket = make_bucket(shapes, order(t), collectives.worker(), t, flat);
      const auto before = collectives.gradient_bits();
      scheme->reduce(bucket, collectives, clock);
      outcome.bits.push_back(collectives.gradient_bits() - before);
      outcome.outputs.push_back(bucket.gradients);
    }
    outcome.state.take(*scheme);
    for (const auto& memory : scheme->memory(0)) outcome.memory.push_back(memory.clone());
  });
  return outcomes;
}

void expect_same_on_all_workers(const std::vector<Outcome>& outcomes) {
  for (const auto& outcome : outcomes)
    for (int t = 0; t < kGoldenSteps; ++t)
      for (std::size_t k = 0; k < outcome.outputs[t].size(); ++k)
        EXPECT_TRUE(at::equal(outcome.outputs[t][k], outcomes[0].outputs[t][k]))
            << "step " << t << ", tensor " << k;
}

// ---- PyTorch DDP
// ---------------------------------------------------------------------------------------

DdpPowerSgdOptions ddp_options(const std::string& name, const std::string& kernels) {
  DdpPowerSgdOptions options;
  options.kernels = kernels;
  options.rank = std::stoll(name.substr(name.find('=') + 1));
  const auto has = [&](const char* text) { return name.find(text) != std::string::npos; };
  if (has("'warm_start': False")) options.warm_start = false;
  if (has("'use_error_feedback': False")) options.use_error_feedback = false;
  if (has("'batch_tensors_with_same_shape': True")) options.batch_tensors_with_same_shape = true;
  if (has("'orthogonalization_epsilon': 1e-08")) options.orthogonalization_epsilon = 1e-8;
  return options;
}

std::unique_ptr<Scheme> make_ddp(const std::string& name, const std::string& kernels) {
  if (name.starts_with("powersgd"))
    return std::make_unique<DdpPowerSgd>(ddp_options(name, kernels));
  const auto& entry = SchemeRegistry::instance().find(
      Implementation::ddp, name == "allreduce" ? "full-precision" : name);
  return entry.make(SchemeRegistry::resolve(entry, {}));
}

void check_outputs(const json& expected, const std::vector<int>& order,
                   const std::vector<at::Tensor>& outputs, bool half, const std::string& what) {
  // The file lists outputs by tensor, the bucket holds them in `order`.
  for (std::size_t place = 0; place < order.size(); ++place) {
    const at::Tensor values = numbers(expected[static_cast<std::size_t>(order[place])]);
    const std::string which = what + ", tensor " + std::to_string(order[place]);
    if (half)
      expect_within(outputs[place], values, kHalfUnit, which);
    else
      expect_close(outputs[place], values, which);
  }
}

void check_ddp_case(const json& golden, const json& expected, const std::string& kernels,
                    bool flat) {
  const auto name = expected.at("case").get<std::string>();
  SCOPED_TRACE(name + ", kernels " + kernels + (flat ? ", flat" : ", separate"));
  const auto order = [&](int t) {
    return expected.at("bucket_order_per_step")[t].get<std::vector<int>>();
  };
  const auto outcomes = run(
      golden, [&] { return make_ddp(name, kernels); }, order, flat);
  for (int t = 0; t < kGoldenSteps; ++t)
    check_outputs(expected.at("output_per_step")[t], order(t), outcomes[0].outputs[t],
                  name == "fp16", "step " + std::to_string(t));
  expect_same_on_all_workers(outcomes);
  if (!name.starts_with("powersgd")) return;
  const auto options = ddp_options(name, kernels);
  if (options.use_error_feedback)
    for (int w = 0; w < kWorkers; ++w)
      expect_close(outcomes[w].state.tensors.at("bucket.0.memory"),
                   numbers(expected.at("error_per_worker")[w]),
                   "error of worker " + std::to_string(w));
  if (options.warm_start)
    expect_close(q_as_in_pytorch(outcomes[0].state.tensors.at("bucket.0.q"), options.rank),
                 numbers(expected.at("q_final")), "Q");
}

TEST(Golden, PyTorchHooks) {
  const json golden = read_golden("pytorch_hooks.json");
  ASSERT_EQ(golden.at("cases").size(), 9U);
  for (const auto& expected : golden.at("cases"))
    for (const char* kernels : {"reference", "fast"})
      for (const bool flat : {true, false}) check_ddp_case(golden, expected, kernels, flat);
}

// ---- Paper
// ---------------------------------------------------------------------------------------------

std::unique_ptr<Scheme> make_paper(const json& expected, const std::string& kernels) {
  const auto name = expected.at("case").get<std::string>();
  if (name == "exact")
    return SchemeRegistry::instance().find(Implementation::paper, "full-precision").make({});
  PaperPowerSgdOptions options;
  options.rank = std::stoll(name.substr(name.find('=') + 1));
  options.reuse_query = name.ends_with("reuse_query");
  options.kernels = kernels;
  auto scheme = std::make_unique<PaperPowerSgd>(options);
  auto used = std::make_shared<std::size_t>(0);
  scheme->set_draw([&expected, used](std::int64_t columns, std::int64_t rank, at::ScalarType) {
    return numbers(expected.at("q_random_in_order_of_use").at((*used)++)).view({columns, rank});
  });
  return scheme;
}

void check_paper_case(const json& golden, const json& expected, const std::string& kernels) {
  SCOPED_TRACE(expected.at("case").get<std::string>() + ", kernels " + kernels);
  std::vector<int> order(golden.at("shapes").size());
  std::iota(order.begin(), order.end(), 0);
  const auto outcomes = run(
      golden, [&] { return make_paper(expected, kernels); }, [&](int) { return order; }, false);
  for (int t = 0; t < kGoldenSteps; ++t)
    check_outputs(expected.at("output_per_step")[t], order, outcomes[0].outputs[t], false,
                  "step " + std::to_string(t));
  expect_same_on_all_workers(outcomes);
  EXPECT_EQ(outcomes[0].bits, expected.at("bits_per_step").get<std::vector<std::int64_t>>());
  for (int w = 0; w < kWorkers; ++w)
    for (std::size_t k = 0; k < outcomes[w].memory.size(); ++k)
      expect_close(outcomes[w].memory[k], numbers(expected.at("memory_per_worker")[w][k]),
                   "memory of worker " + std::to_string(w) + ", tensor " + std::to_string(k));
}

TEST(Golden, PaperReducers) {
  const json golden = read_golden("paper_reducers.json");
  ASSERT_EQ(golden.at("cases").size(), 5U);
  for (const auto& expected : golden.at("cases"))
    for (const char* kernels : {"reference", "fast"}) check_paper_case(golden, expected, kernels);
}

}  // namespace
}  // namespace psgd::test
