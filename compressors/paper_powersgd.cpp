#include "compressors/paper_powersgd.h"

#include "compressors/elementwise.h"
#include "compressors/normal_draw.h"
#include "compressors/orthogonalise.h"

namespace psgd {
namespace {

constexpr double kEpsilon = 1e-8;  // the paper's orthogonalize()

LowRankPolicy policy_for(const PaperPowerSgdOptions& options) {
  LowRankPolicy policy;
  policy.rank = options.rank;
  policy.error_memory = true;
  policy.group_equal_shapes = false;
  policy.compress = [](std::int64_t dimensions, std::int64_t, std::int64_t, std::int64_t) {
    return dimensions >= 2;
  };
  return policy;
}

}  // namespace

PaperPowerSgd::PaperPowerSgd(PaperPowerSgdOptions options)
    : options_(std::move(options)),
      policy_(policy_for(options_)),
      kernels_(make_low_rank_kernels(options_.kernels)),
      random_(static_cast<std::uint32_t>(options_.seed)),
      draw_([this](std::int64_t columns, std::int64_t rank, at::ScalarType type) {
        return draw_normal({columns, rank}, type, random_.next());
      }) {}

void PaperPowerSgd::reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) {
  if (bucket.gradients.empty()) return;
  state_.prepare(bucket.gradients, policy_, true);
  {
    const auto timed = clock.scope(Phase::encode);
    prepare_q();
    pack_whole(state_, bucket, false);
    kernels_->encode(state_, bucket);
  }
  if (!state_.matrices.empty()) {
    const auto timed = clock.scope(Phase::collective_p);
    collectives.all_reduce(state_.p, Traffic::gradient);
  }
  const std::unique_ptr<Request> whole = start_whole(collectives, clock);
  if (!state_.matrices.empty()) compress_matrices(bucket, collectives, clock);
  if (whole) {
    const auto timed = clock.scope(Phase::collective_vectors);
    whole->wait();
  }
  const auto timed = clock.scope(Phase::decode);
  divide(state_.buffer, collectives.size());
  unpack_whole(state_, bucket, false);
  kernels_->decode(state_, bucket);
  ++steps_;
}

void PaperPowerSgd::compress_matrices(Bucket& bucket, Collectives& collectives, PhaseClock& clock) {
  {
    const auto timed = clock.scope(Phase::orthogonalise);
    for (auto& matrix : state_.matrices) gram_schmidt(matrix.p, kEpsilon);
  }
  {
    const auto timed = clock.scope(Phase::encode);
    kernels_->project(state_, bucket);
  }
  {
    const auto timed = clock.scope(Phase::collective_q);
    collectives.all_reduce(state_.q, Traffic::gradient);
  }
  const auto timed = clock.scope(Phase::decode);
  divide(state_.q, collectives.size());
}

std::unique_ptr<Request> PaperPowerSgd::start_whole(Collectives& collectives, PhaseClock& clock) {
  if (state_.buffer.numel() == 0) return nullptr;
  const auto timed = clock.scope(Phase::collective_vectors);
  return collectives.start_all_reduce(state_.buffer, Traffic::gradient);
}

void PaperPowerSgd::prepare_q() {
  if (options_.reuse_query && q_is_warm_) {
    const std::uint64_t seed =
        mix_seed(static_cast<std::uint64_t>(options_.seed), static_cast<std::uint64_t>(steps_));
    redrawn_ += state_.redraw_dead_columns(seed, options_.rank);
    return;
  }
  for (auto& matrix : state_.matrices)
    matrix.q.copy_(draw_(matrix.columns, matrix.rank, state_.q.scalar_type())
                       .view({matrix.columns, matrix.rank})
                       .t());
  q_is_warm_ = options_.reuse_query;
}

std::vector<at::Tensor> PaperPowerSgd::memory(int bucket_index) const {
  if (bucket_index != 0) return {};
  return state_.memory_views();
}

void PaperPowerSgd::visit_state(StateVisitor& visitor) {
  visitor.integer("steps", steps_);
  visitor.integer("redrawn_columns", redrawn_);
  std::string random = random_.to_text();
  visitor.text("random", random);
  random_.from_text(random);
  state_.visit("list", policy_, options_.reuse_query, visitor);
  std::int64_t warm = q_is_warm_ ? 1 : 0;
  visitor.integer("q_is_warm", warm);
  q_is_warm_ = warm != 0;
}

namespace {

PaperPowerSgdOptions read(const OptionValues& values) {
  PaperPowerSgdOptions options;
  options.rank = std::get<std::int64_t>(values.at("rank"));
  options.reuse_query = std::get<bool>(values.at("reuse_query"));
  options.seed = std::get<std::int64_t>(values.at("seed"));
  options.kernels = std::get<std::string>(values.at("kernels"));
  return options;
}

std::vector<OptionSpec> specs() {
  const PaperPowerSgdOptions defaults;
  return {
      {"rank", defaults.rank, "rank of the approximation", 1, 1024},
      {"reuse_query", defaults.reuse_query,
       "warm start: begin with the last step's Q, not with a random one"},
      {"seed", defaults.seed, "seed of the random Q", 0, 4294967295.0},
      kernels_option(),
  };
}

const RegisterScheme paper(
    {"powersgd", Implementation::paper,
     "low-rank approximation by one power iteration a step, as the paper's RankKReducer", specs(),
     [](const OptionValues& values) {
       return "rank " + std::to_string(std::get<std::int64_t>(values.at("rank")));
     },
     [](const OptionValues& values) { return std::make_unique<PaperPowerSgd>(read(values)); }});

}  // namespace
}  // namespace psgd
