// What is particular to PowerSGD, in both implementations.
#include <gtest/gtest.h>

#include <cmath>

#include "compressors/ddp_powersgd.h"
#include "compressors/paper_powersgd.h"
#include "tests/support/buckets.h"
#include "tests/support/golden_gradients.h"
#include "tests/support/resnet18_shapes.h"
#include "tests/support/saved_state.h"
#include "tests/support/thread_collectives.h"

namespace psgd::test {
namespace {

double max_abs(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

// ---- bits
// ----------------------------------------------------------------------------------------------

/// The bits of each of three steps with ResNet-18's gradients.
std::vector<std::int64_t> bits_per_step(Implementation implementation, const std::string& name,
                                        std::int64_t rank) {
  const auto& entry = SchemeRegistry::instance().find(implementation, name);
  OptionValues given;
  if (rank > 0) given["rank"] = rank;
  std::vector<std::int64_t> bits;
  run_workers(1, [&](ThreadCollectives& collectives) {
    const auto scheme = entry.make(SchemeRegistry::resolve(entry, given));
    Bucket bucket = flat_bucket(resnet18_shapes());
    bucket.flat.fill_(1e-3);
    PhaseClock clock;
    for (int t = 0; t < 3; ++t) {
      const auto before = collectives.gradient_bits();
      scheme->reduce(bucket, collectives, clock);
      bits.push_back(collectives.gradient_bits() - before);
    }
  });
  return bits;
}

TEST(Bits, OfResNet18AreThoseOfTheTable) {
  constexpr std::int64_t full = 357'566'784;
  using Bits = std::vector<std::int64_t>;
  EXPECT_EQ(bits_per_step(Implementation::ddp, "full-precision", 0), (Bits{full, full, full}));
  EXPECT_EQ(bits_per_step(Implementation::paper, "full-precision", 0), (Bits{full, full, full}));
  EXPECT_EQ(bits_per_step(Implementation::ddp, "fp16", 0), (Bits(3, 178'783'392)));
  const std::map<std::int64_t, std::int64_t> by_rank = {
      {1, 1'469'920}, {2, 2'632'320}, {4, 4'957'120}};
  for (const auto& [rank, bits] : by_rank) {
    EXPECT_EQ(bits_per_step(Implementation::ddp, "powersgd", rank), (Bits{full, full, bits}));
    EXPECT_EQ(bits_per_step(Implementation::paper, "powersgd", rank), (Bits{bits, bits, bits}));
  }
}

// ---- one matrix on one worker
// --------------------------------------------------------------------------

std::unique_ptr<DdpPowerSgd> ddp(std::int64_t rank, bool warm_start,
                                 const std::string& kernels = "fast") {
  DdpPowerSgdOptions options;
  options.rank = rank;
  options.start_iteration = warm_start ? 2 : 0;
  options.min_compression_rate = 0;
  options.use_error_feedback = false;
  options.warm_start = warm_start;
  options.kernels = kernels;
  return std::make_unique<DdpPowerSgd>(options);
}

std::unique_ptr<PaperPowerSgd> paper(std::int64_t rank, bool reuse_query,
                                     const std::string& kernels = "fast") {
  PaperPowerSgdOptions options;
  options.rank = rank;
  options.reuse_query = reuse_query;
  options.kernels = kernels;
  return std::make_unique<PaperPowerSgd>(options);
}

/// The scheme's answer to `matrix`, without error memory from the steps before.
at::Tensor answer(Scheme& scheme, const at::Tensor& matrix, Collectives& collectives) {
  for (const auto& memory : scheme.memory(0)) memory.zero_();
  Bucket bucket;
  bucket.gradients = {matrix.clone()};
  PhaseClock clock;
  scheme.reduce(bucket, collectives, clock);
  return bucket.gradients[0];
}

at::Tensor best_approximation(const at::Tensor& matrix, std::int64_t rank) {
  const auto [u, s, vt] = at::linalg_svd(matrix, false);
  return at::mm(u.narrow(1, 0, rank) * s.narrow(0, 0, rank), vt.narrow(0, 0, rank));
}

double distance_to_best_after(Scheme& scheme, std::int64_t rank, int steps) {
  const at::Tensor matrix = golden_gradient({20, 45}, 1, 0, 0);
  double distance = 0;
  run_workers(1, [&](ThreadCollectives& collectives) {
    at::Tensor output;
    for (int t = 0; t < steps; ++t) output = answer(scheme, matrix, collectives);
    distance = (output - best_approximation(matrix, rank)).norm().item<double>() /
               matrix.norm().item<double>();
  });
  return distance;
}

TEST(WarmStart, ConvergesToTheBestApproximation) {
  constexpr int steps = 400;
  for (const std::int64_t rank : {1, 2, 4}) {
    EXPECT_LT(distance_to_best_after(*ddp(rank, true), rank, steps), 1e-3)
        << "PyTorch DDP, rank " << rank;
    EXPECT_LT(distance_to_best_after(*paper(rank, true), rank, steps), 1e-3)
        << "Paper, rank " << rank;
    EXPECT_GT(distance_to_best_after(*ddp(rank, false), rank, steps), 0.1)
        << "PyTorch DDP, rank " << rank;
    EXPECT_GT(distance_to_best_after(*paper(rank, false), rank, steps), 0.1)
        << "Paper, rank " << rank;
  }
}

TEST(FreshQ, IsTheSameOnAllWorkersAndNewAtEachStep) {
  const at::Tensor matrix = golden_gradient({20, 45}, 1, 0, 0);
  for (const bool use_ddp : {true, false}) {
    std::vector<std::vector<at::Tensor>> outputs(3);
    run_workers(3, [&](ThreadCollectives& collectives) {
      std::unique_ptr<Scheme> scheme;
      if (use_ddp)
        scheme = ddp(2, false);
      else
        scheme = paper(2, false);
      for (int t = 0; t < 4; ++t)
        outputs[static_cast<std::size_t>(collectives.worker())].push_back(
            answer(*scheme, matrix, collectives));
    });
    for (int t = 0; t < 4; ++t) {
      EXPECT_TRUE(at::equal(outputs[1][t], outputs[0][t]));
      EXPECT_TRUE(at::equal(outputs[2][t], outputs[0][t]));
      if (t > 0) {
        EXPECT_GT(max_abs(outputs[0][t] - outputs[0][t - 1]), 0.01) << "step " << t;
      }
    }
  }
}

// ---- P spans M Q
// ---------------------------------------------------------------------------------------

/// Matrices that are difficult: of low rank, with zero rows and columns, with equal columns, all
/// zero.
std::vector<at::Tensor> difficult_matrices() {
  const at::Tensor plain = golden_gradient({12, 30}, 3, 0, 0);
  std::vector<at::Tensor> matrices = {plain};
  for (const std::int64_t rank : {1, 2, 5})
    matrices.push_back(at::mm(plain.narrow(1, 0, rank), plain.narrow(0, 0, rank)).contiguous());
  at::Tensor zeros = plain.clone();
  zeros.narrow(0, 2, 5).zero_();
  zeros.narrow(1, 10, 15).zero_();
  matrices.push_back(zeros);
  matrices.push_back(plain.narrow(1, 0, 1).expand({12, 30}).contiguous());
  matrices.push_back(at::zeros({12, 30}));
  matrices.push_back(plain * 1e-12);
  at::Tensor wide = plain.clone();  // singular values over eight orders of magnitude
  for (std::int64_t i = 0; i < 12; ++i) wide[i].mul_(std::pow(10.0, -static_cast<double>(i) * 0.7));
  matrices.push_back(wide);
  return matrices;
}

/// The output is P Pt M, so output Q = M Q if and only if P spans M Q.
void expect_spanned(const at::Tensor& output, const at::Tensor& matrix, const at::Tensor& q,
                    double tolerance) {
  ASSERT_TRUE(at::isfinite(output).all().item<bool>());
  const at::Tensor wanted = at::mm(matrix, q);
  EXPECT_LE(max_abs(at::mm(output, q) - wanted), tolerance * (max_abs(wanted) + max_abs(matrix)));
}

TEST(P, SpansMQInPyTorchDdp) {
  const auto matrices = difficult_matrices();
  for (std::int64_t rank = 1; rank <= 8; ++rank)
    for (const char* kernels : {"fast", "reference"})
      for (std::size_t i = 0; i < matrices.size(); ++i)
        run_workers(1, [&](ThreadCollectives& collectives) {
          SCOPED_TRACE("rank " + std::to_string(rank) + ", matrix " + std::to_string(i) + ", " +
                       kernels);
          const auto scheme = ddp(rank, true, kernels);
          for (int t = 0; t < 10; ++t) {
            SavedState state;
            state.take(*scheme);
            const std::int64_t redrawn = scheme->counters().at("redrawn_columns");
            const at::Tensor output = answer(*scheme, matrices[i], collectives);
            // Steps 0 and 1 are uncompressed, step 2 draws its Q. A redrawn column is not in the
            // state before.
            if (t < 3 || scheme->counters().at("redrawn_columns") != redrawn) continue;
            const at::Tensor q = state.tensors.at("bucket.0.q").view({rank, 30}).t();
            expect_spanned(output, matrices[i], q / q.norm(2, 0, true).clamp_min(1e-30), 2e-5);
          }
        });
}

TEST(P, SpansMQInPaper) {
  auto matrices = difficult_matrices();
  matrices.erase(matrices.begin() +
                 7);  // of norm 1e-12: the paper's 1e-8 in the norm makes P small, not a unit
  for (std::int64_t rank = 1; rank <= 8; ++rank)
    for (const char* kernels : {"fast", "reference"})
      for (std::size_t i = 0; i < matrices.size(); ++i)
        run_workers(1, [&](ThreadCollectives& collectives) {
          SCOPED_TRACE("rank " + std::to_string(rank) + ", matrix " + std::to_string(i) + ", " +
                       kernels);
          const auto scheme = paper(rank, false, kernels);
          at::Tensor q = golden_gradient({30, rank}, 9, 0, 0);
          if (rank > 2) q.select(1, 2).copy_(q.select(1, 0) * 2 - q.select(1, 1));
          if (rank > 3) q.select(1, 3).zero_();
          scheme->set_draw([&](std::int64_t, std::int64_t, at::ScalarType) { return q; });
          expect_spanned(answer(*scheme, matrices[i], collectives), matrices[i], q, 2e-5);
        });
}

// ---- details of the originals
// --------------------------------------------------------------------------

/// P Pt M for the P that Gram-Schmidt makes of M q; rank 1.
at::Tensor projected(const at::Tensor& matrix, const at::Tensor& q) {
  at::Tensor p = at::mm(matrix, q);
  p = p / p.norm();
  return at::mm(p, at::mm(p.t(), matrix));
}

TEST(DdpPowerSgd, DrawsQInPyTorchsOrder) {
  // 14 numbers a Q: fewer than the blocks of 16 in which randn draws, so two at once are not two
  // alone.
  const Shapes shapes = {{9, 14}, {20, 30}, {9, 14}};
  for (const bool batched : {false, true})
    run_workers(1, [&](ThreadCollectives& collectives) {
      DdpPowerSgdOptions options;
      options.min_compression_rate = 0;
      options.start_iteration = 0;
      options.warm_start = false;
      options.use_error_feedback = false;
      options.batch_tensors_with_same_shape = batched;
      DdpPowerSgd scheme(options);
      PhaseClock clock;
      for (const std::uint64_t seed : {209652396U, 398764591U}) {
        at::Generator generator = at::detail::createCPUGenerator(seed);
        const at::Tensor both =
            batched ? at::randn({2, 14, 1}, generator)
                    : at::stack({at::randn({14, 1}, generator), at::randn({14, 1}, generator)});
        const std::vector<at::Tensor> q = {both[0], at::randn({30, 1}, generator), both[1]};
        Bucket bucket = separate_bucket(shapes);
        for (int k = 0; k < 3; ++k) bucket.gradients[k].copy_(golden_gradient(shapes[k], k, 0, 0));
        scheme.reduce(bucket, collectives, clock);
        for (int k = 0; k < 3; ++k)
          EXPECT_LT(
              max_abs(bucket.gradients[k] - projected(golden_gradient(shapes[k], k, 0, 0), q[k])),
              1e-5)
              << "tensor " << k << (batched ? ", batched" : "");
      }
    });
}

TEST(RedrawnColumns, DependOnSeedAndPlaceAlone) {
  LowRankPolicy policy;
  policy.rank = 2;
  policy.compress = [](auto, auto, auto, auto) { return true; };
  const auto redrawn = [&](std::uint64_t seed) {
    LowRankState state({{9, 14}, {9, 14}}, at::TensorOptions().dtype(at::kFloat), policy);
    state.matrices[0].q[1].fill_(1);
    EXPECT_EQ(state.redraw_dead_columns(seed, 2), 3);
    EXPECT_EQ(max_abs(state.matrices[0].q[1] - 1), 0) << "a column that could be used was redrawn";
    return state.q;
  };
  const at::Tensor q = redrawn(5);
  EXPECT_TRUE(at::equal(redrawn(5), q));
  EXPECT_FALSE(at::equal(redrawn(6), q));
  EXPECT_FALSE(at::equal(q.narrow(0, 28, 14), q.narrow(0, 42, 14)));
}

TEST(DdpPowerSgd, RefusesABucketThatChanges) {
  run_workers(1, [](ThreadCollectives& collectives) {
    DdpPowerSgd scheme(DdpPowerSgdOptions{});
    PhaseClock clock;
    for (int t = 0; t < 4; ++t) {
      Bucket bucket = flat_bucket({{t < 3 ? 20 : 21, 30}});
      bucket.flat.fill_(1);
      if (t < 3)
        scheme.reduce(bucket, collectives, clock);
      else
        EXPECT_THROW(scheme.reduce(bucket, collectives, clock), std::invalid_argument);
    }
  });
}

TEST(DdpPowerSgd, CountsStepsByTheLastBucket) {
  run_workers(1, [](ThreadCollectives& collectives) {
    DdpPowerSgd scheme(DdpPowerSgdOptions{});
    PhaseClock clock;
    for (int call = 0; call < 6; ++call) {
      Bucket bucket = flat_bucket({{20, 30}});
      bucket.flat.fill_(1);
      bucket.index = call % 2;
      bucket.is_last = bucket.index == 1;
      const auto before = collectives.gradient_bits();
      scheme.reduce(bucket, collectives, clock);
      const std::int64_t elements = (collectives.gradient_bits() - before) / 32;
      EXPECT_EQ(elements, call < 4 ? 600 : 50) << "call " << call;
    }
  });
}

TEST(DdpPowerSgd, CompressesOnlyWhatBecomesSmallEnough) {
  run_workers(1, [](ThreadCollectives& collectives) {
    DdpPowerSgdOptions options;
    options.rank = 2;
    DdpPowerSgd scheme(options);
    PhaseClock clock;
    // (8 + 8) 2 2 = 64 = 8 8 is not small enough, (8 + 9) 2 2 = 68 < 72 is; a vector never is.
    for (int t = 0; t < 3; ++t) {
      Bucket bucket = flat_bucket({{8, 8}, {8, 9}, {100}});
      bucket.flat.fill_(1);
      const auto before = collectives.gradient_bits();
      scheme.reduce(bucket, collectives, clock);
      if (t == 2) {
        EXPECT_EQ((collectives.gradient_bits() - before) / 32, 64 + 17 * 2 + 100);
      }
    }
  });
}

TEST(PaperPowerSgd, KeepsNoMemoryOfVectors) {
  run_workers(2, [](ThreadCollectives& collectives) {
    const auto scheme = paper(1, true);
    PhaseClock clock;
    for (int t = 0; t < 3; ++t) {
      Bucket bucket;
      bucket.gradients = {golden_gradient({7}, 0, collectives.worker(), t),
                          golden_gradient({6, 8}, 1, collectives.worker(), t)};
      scheme->reduce(bucket, collectives, clock);
      EXPECT_EQ(max_abs(scheme->memory(0)[0]), 0);
      EXPECT_GT(max_abs(scheme->memory(0)[1]), 0);
    }
  });
}

}  // namespace
}  // namespace psgd::test
