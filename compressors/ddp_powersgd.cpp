#include "compressors/ddp_powersgd.h"

#include <stdexcept>

#include "compressors/elementwise.h"
#include "compressors/full_precision.h"
#include "compressors/normal_draw.h"
#include "compressors/orthogonalise.h"

namespace psgd {

DdpPowerSgd::DdpPowerSgd(DdpPowerSgdOptions options)
    : options_(std::move(options)),
      policy_(policy()),
      kernels_(make_low_rank_kernels(options_.kernels)),
      full_precision_(std::make_unique<FullPrecision>(Implementation::ddp)),
      random_(static_cast<std::uint32_t>(options_.random_seed)) {
  if ((options_.use_error_feedback || options_.warm_start) && options_.start_iteration < 2)
    throw std::invalid_argument(
        "powersgd: start_iteration is " + std::to_string(options_.start_iteration) +
        ", but must be at least 2 with use_error_feedback or warm_start: PyTorch DDP rebuilds its "
        "buckets "
        "once, "
        "after the first step, and what was remembered of the former buckets would not fit. Raise "
        "start_iteration, or switch both off");
}

LowRankPolicy DdpPowerSgd::policy() const {
  LowRankPolicy policy;
  policy.rank = options_.rank;
  policy.error_memory = options_.use_error_feedback;
  policy.group_equal_shapes = true;
  policy.compress = [rate = options_.min_compression_rate](std::int64_t dimensions,
                                                           std::int64_t rows, std::int64_t columns,
                                                           std::int64_t rank) {
    const auto sent = static_cast<double>((rows + columns) * rank);
    return dimensions >= 2 && sent * rate < static_cast<double>(rows * columns);
  };
  return policy;
}

void DdpPowerSgd::reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) {
  if (iteration_ < options_.start_iteration)
    full_precision_->reduce(bucket, collectives, clock);
  else if (!bucket.gradients.empty())
    compress(prepare(bucket), bucket, collectives, clock);
  if (bucket.is_last) ++iteration_;
}

DdpPowerSgd::BucketState& DdpPowerSgd::prepare(const Bucket& bucket) {
  const auto index = static_cast<std::size_t>(bucket.index);
  if (buckets_.size() <= index) buckets_.resize(index + 1);
  BucketState& state = buckets_[index];
  state.low_rank.prepare(bucket.gradients, policy_,
                         options_.use_error_feedback || options_.warm_start);
  return state;
}

void DdpPowerSgd::compress(BucketState& state, Bucket& bucket, Collectives& collectives,
                           PhaseClock& clock) {
  LowRankState& low_rank = state.low_rank;
  const bool has_matrices = !low_rank.matrices.empty();
  {
    const auto timed = clock.scope(Phase::orthogonalise);
    prepare_q(state, bucket.index);
  }
  {
    const auto timed = clock.scope(Phase::encode);
    pack_whole(low_rank, bucket, options_.use_error_feedback);
    kernels_->encode(low_rank, bucket);
  }
  std::unique_ptr<Request> whole;
  if (low_rank.buffer.numel() > 0) {
    const auto timed = clock.scope(Phase::collective_vectors);
    whole = collectives.start_all_reduce(low_rank.buffer, Traffic::gradient);
  }
  if (has_matrices) {
    {
      const auto timed = clock.scope(Phase::collective_p);
      collectives.all_reduce(low_rank.p, Traffic::gradient);
    }
    {
      const auto timed = clock.scope(Phase::orthogonalise);
      for (auto& matrix : low_rank.matrices)
        ddp_orthogonalise(matrix.p, options_.orthogonalization_epsilon);
    }
    {
      const auto timed = clock.scope(Phase::encode);
      kernels_->project(low_rank, bucket);
    }
    const auto timed = clock.scope(Phase::collective_q);
    collectives.all_reduce(low_rank.q, Traffic::gradient);
  }
  if (whole) {
    const auto timed = clock.scope(Phase::collective_vectors);
    whole->wait();
  }
  const auto timed = clock.scope(Phase::decode);
  divide(low_rank.buffer, collectives.size());
  divide(low_rank.q, collectives.size());
  unpack_whole(low_rank, bucket, options_.use_error_feedback);
  kernels_->decode(low_rank, bucket);
}

void DdpPowerSgd::prepare_q(BucketState& state, int bucket_index) {
  LowRankState& low_rank = state.low_rank;
  if (!options_.warm_start || !state.q_is_warm) {
    draw_q(low_rank);
    state.q_is_warm = options_.warm_start;
  } else {
    std::uint64_t seed = mix_seed(static_cast<std::uint64_t>(options_.random_seed),
                                  static_cast<std::uint64_t>(iteration_));
    seed = mix_seed(seed, static_cast<std::uint64_t>(bucket_index));
    redrawn_ += low_rank.redraw_dead_columns(seed, kLargestGramSchmidtRank);
  }
  for (auto& matrix : low_rank.matrices)
    ddp_orthogonalise(matrix.q, options_.orthogonalization_epsilon);
}

void DdpPowerSgd::draw_q(LowRankState& state) {
  // PyTorch draws a number for a bucket without matrices, too.
  at::Generator generator = seeded_generator(random_.next());
  const auto type = state.q.scalar_type();
  auto matrix = state.matrices.begin();
  for (const std::size_t group_size : state.group_sizes) {
    // One draw for the whole group or one a matrix: not the same numbers, as randn fills blocks
    // of 16.
    const std::size_t batch = options_.batch_tensors_with_same_shape ? group_size : 1;
    for (std::size_t done = 0; done < group_size; done += batch) {
      const at::Tensor drawn = draw_normal(
          {static_cast<std::int64_t>(batch), matrix->columns, matrix->rank}, type, generator);
      for (std::size_t i = 0; i < batch; ++i, ++matrix)
        matrix->q.copy_(drawn[static_cast<std::int64_t>(i)].t());
    }
  }
}

std::vector<at::Tensor> DdpPowerSgd::memory(int bucket_index) const {
  const auto index = static_cast<std::size_t>(bucket_index);
  if (index >= buckets_.size()) return {};
  return buckets_[index].low_rank.memory_views();
}

void DdpPowerSgd::visit_state(StateVisitor& visitor) {
  visitor.integer("iteration", iteration_);
  visitor.integer("redrawn_columns", redrawn_);
  std::string random = random_.to_text();
  visitor.text("random", random);
  random_.from_text(random);
  auto count = static_cast<std::int64_t>(buckets_.size());
  visitor.integer("buckets", count);
  buckets_.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    visit_bucket(buckets_[i], "bucket." + std::to_string(i), visitor);
}

void DdpPowerSgd::visit_bucket(BucketState& state, const std::string& prefix,
                               StateVisitor& visitor) {
  state.low_rank.visit(prefix, policy_, options_.warm_start, visitor);
  std::int64_t warm = state.q_is_warm ? 1 : 0;
  visitor.integer(prefix + ".q_is_warm", warm);
  state.q_is_warm = warm != 0;
}

namespace {

DdpPowerSgdOptions read(const OptionValues& values) {
  DdpPowerSgdOptions options;
  options.rank = std::get<std::int64_t>(values.at("rank"));
  options.start_iteration = std::get<std::int64_t>(values.at("start_iteration"));
  options.min_compression_rate = std::get<double>(values.at("min_compression_rate"));
  options.use_error_feedback = std::get<bool>(values.at("use_error_feedback"));
  options.warm_start = std::get<bool>(values.at("warm_start"));
  options.orthogonalization_epsilon = std::get<double>(values.at("orthogonalization_epsilon"));
  options.random_seed = std::get<std::int64_t>(values.at("random_seed"));
  options.batch_tensors_with_same_shape =
      std::get<bool>(values.at("batch_tensors_with_same_shape"));
  options.kernels = std::get<std::string>(values.at("kernels"));
  return options;
}

std::vector<OptionSpec> specs() {
  const DdpPowerSgdOptions defaults;
  return {
      {"rank", defaults.rank, "rank of the approximation", 1, 1024},
      {"start_iteration", defaults.start_iteration,
       "steps in full precision at first; at least 2 with error "
       "feedback or warm start",
       0, 1e9},
      {"min_compression_rate", defaults.min_compression_rate,
       "compress a tensor only if that makes it this many "
       "times smaller",
       0, 1e9},
      {"use_error_feedback", defaults.use_error_feedback,
       "add to the next gradient what compression left out"},
      {"warm_start", defaults.warm_start, "begin with the last step's Q, not with a random one"},
      {"orthogonalization_epsilon", defaults.orthogonalization_epsilon,
       "added to a column's norm before the "
       "division by it",
       0, 1},
      {"random_seed", defaults.random_seed, "seed of the random Q", 0, 4294967295.0},
      {"batch_tensors_with_same_shape", defaults.batch_tensors_with_same_shape,
       "draw the random Q of tensors "
       "with equal shapes at once"},
      kernels_option(),
  };
}

const RegisterScheme ddp(
    {"powersgd", Implementation::ddp,
     "low-rank approximation by one power iteration a step, as PyTorch's powerSGD_hook", specs(),
     [](const OptionValues& values) {
       return "rank " + std::to_string(std::get<std::int64_t>(values.at("rank")));
     },
     [](const OptionValues& values) { return std::make_unique<DdpPowerSgd>(read(values)); }});

}  // namespace
}  // namespace psgd
