#include "harness/train/reduction_bench.h"

#include <algorithm>
#include <cmath>

#include "harness/data/dataset.h"
#include "harness/engine/bucket_layout.h"
#include "harness/engine/device_sync.h"
#include "harness/error.h"
#include "harness/train/trainer_parts.h"

namespace psgd {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// The scheme's memory of a bucket as one flat tensor; zeros where it keeps none.
torch::Tensor flat_memory(const Scheme& scheme, const Bucket& bucket) {
  torch::Tensor flat = torch::zeros_like(bucket.flat);
  const auto memory = scheme.memory(bucket.index);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (!memory[i].defined()) continue;
    const auto& gradient = bucket.gradients[i];
    const auto offset = gradient.storage_offset() - bucket.flat.storage_offset();
    flat.narrow(0, offset, gradient.numel()).copy_(memory[i].reshape({-1}));
  }
  return flat;
}

/// The mean over the workers, in float64.
torch::Tensor mean_over_workers(const torch::Tensor& values, Collectives& collectives) {
  at::Tensor sum = values.to(torch::kDouble).contiguous().clone();
  collectives.all_reduce(sum, Traffic::check);
  return sum / collectives.size();
}

}  // namespace

ReductionBench::ReductionBench(const Options& options, MpiCollectives& collectives,
                               torch::Device device)
    : options_(options), collectives_(collectives), scheme_(make_scheme(options)) {
  const auto model = make_model(options, Dataset{}, device);
  buckets_ = lay_out_buckets(options, model->parameters());
  for (auto& bucket : buckets_) {
    // Normal values, another stream for each worker and bucket.
    auto generator = at::make_generator<at::CPUGeneratorImpl>(
        static_cast<std::uint64_t>(1 + collectives.worker()) * 1000 +
        static_cast<std::uint64_t>(bucket.index));
    sources_.push_back(torch::randn(bucket.flat.sizes(), generator).to(bucket.flat.options()));
  }
}

void ReductionBench::load_gradients() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i].flat.copy_(sources_[i]);
}

void ReductionBench::reduce_all(PhaseClock& clock) {
  const auto scope = clock.scope(Phase::reduce);
  for (auto& bucket : buckets_) scheme_->reduce(bucket, collectives_, clock);
  synchronise(buckets_.front().flat.device());
}

/// mean(output + memory after) = mean(gradient + memory before), and the same output on every
/// worker.
void ReductionBench::check() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto& bucket = buckets_[i];
    const torch::Tensor before = mean_over_workers(sources_[i] + memory_before_[i], collectives_);
    const torch::Tensor memory = flat_memory(*scheme_, bucket);
    const torch::Tensor after = mean_over_workers(bucket.flat + memory, collectives_);
    const torch::Tensor mean_output = mean_over_workers(bucket.flat, collectives_);
    const double scale = before.abs().max().item<double>();
    const bool is_lossy_without_memory =
        scheme_->memory(bucket.index).empty() && options_.scheme != "full-precision";
    const double error = (after - before).abs().max().item<double>() / scale;
    const double spread =
        (bucket.flat.to(torch::kDouble) - mean_output).abs().max().item<double>() / scale;
    largest_error_ = std::max(largest_error_, error);
    // A mean of n equal numbers may be off by rounding in float64; another worker's number is off
    // by far more.
    if (!(spread <= 1e-12))
      throw Error("bucket " + std::to_string(i) +
                  ": the workers hold different results, apart by " + std::to_string(spread) +
                  " of the largest value");
    const double allowed = is_lossy_without_memory ? 1.0 : 1e-5;
    if (!(error <= allowed))
      throw Error("bucket " + std::to_string(i) +
                  ": output + memory differs from gradient + memory before, on " +
                  "average over the workers, by " + std::to_string(error) +
                  " of the largest value; allowed " + std::to_string(allowed));
  }
}

nlohmann::ordered_json ReductionBench::run() {
  const torch::NoGradGuard no_grad;
  std::int64_t elements = 0;
  for (const auto& bucket : buckets_) elements += bucket.flat.numel();
  const torch::Tensor first = torch::rand({elements});
  const torch::Tensor second = torch::rand({elements});
  torch::Tensor third = torch::zeros({elements});
  PhaseClock clock;
  std::vector<double> reductions;
  std::vector<double> bare_times;
  std::vector<double> passes;
  at::Tensor bare;
  const auto timed = [&](const std::function<void()>& work) {
    collectives_.barrier();
    const auto start = PhaseClock::now();
    work();
    return static_cast<double>(PhaseClock::now() - start) * 1e-9;
  };
  std::int64_t bits = 0;
  for (std::int64_t step = 0; step < options_.warmup_steps + options_.timed_steps; ++step) {
    if (step == options_.warmup_steps) clock.reset();
    load_gradients();
    memory_before_.clear();
    for (const auto& bucket : buckets_) memory_before_.push_back(flat_memory(*scheme_, bucket));
    const auto bits_before = collectives_.gradient_bits();
    const double reduction = timed([&] { reduce_all(clock); });
    bits = collectives_.gradient_bits() - bits_before;
    if (!bare.defined() || bare.numel() != bits / 32) bare = torch::zeros({bits / 32});
    const double bare_time = timed([&] { collectives_.all_reduce(bare, Traffic::check); });
    const double pass = timed([&] { at::add_out(third, first, second); });
    if (step < options_.warmup_steps) continue;
    reductions.push_back(reduction);
    bare_times.push_back(bare_time);
    passes.push_back(pass);
  }
  check();
  at::Tensor slowest =
      at::tensor({median(reductions), median(bare_times), median(passes)}, at::kDouble);
  at::Tensor all = at::empty({collectives_.size() * 3}, at::kDouble);
  collectives_.all_gather(slowest, all, Traffic::check);
  slowest = std::get<0>(all.view({collectives_.size(), 3}).max(0));
  nlohmann::ordered_json phases;
  for (std::size_t phase = 0; phase < kPhases; ++phase)
    if (clock.sums()[phase] > 0)
      phases[std::string(name(static_cast<Phase>(phase)))] =
          static_cast<double>(clock.sums()[phase]) * 1e-9 /
          static_cast<double>(options_.timed_steps);
  return {{"reduction", slowest[0].item<double>()},
          {"bare_allreduce", slowest[1].item<double>()},
          {"memory_pass", slowest[2].item<double>()},
          {"bits", bits},
          {"phases", phases},
          {"largest_error", largest_error_}};
}

}  // namespace psgd
