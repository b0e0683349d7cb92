// The fast loops against the reference, over shapes that do and do not fill vectors, blocks of rows
// and pieces of columns, at every rank, with gradients at every place within a vector.
#include <gtest/gtest.h>

#include <sstream>

#include "compressors/low_rank_kernels.h"
#include "tests/support/buckets.h"

namespace psgd::test {
namespace {

struct Case {
  Case(std::int64_t rows, std::int64_t columns, std::int64_t rank, bool memory, std::int64_t shift)
      : bucket(flat_bucket({{shift}, {rows, columns}, {3}})) {
    LowRankPolicy policy;
    policy.rank = rank;
    policy.error_memory = memory;
    policy.compress = [](std::int64_t dimensions, auto, auto, auto) { return dimensions == 2; };
    state = LowRankState({{shift}, {rows, columns}, {3}}, at::TensorOptions().dtype(at::kFloat),
                         policy);
    fill(bucket.flat, 1);
    fill(state.p, 2);
    fill(state.q, 3);
    if (memory) fill(state.memory, 4);
  }

  static void fill(at::Tensor& tensor, std::uint64_t seed) {
    tensor.uniform_(-1, 1, at::detail::createCPUGenerator(seed));
  }

  Bucket bucket;
  LowRankState state;
};

void expect_equal(const Case& fast, const Case& reference, double tolerance,
                  const std::string& what) {
  const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && a.numel() > 0 ? (a - b).abs().max().item<double>() : 0.0;
  };
  EXPECT_LE(difference(fast.state.p, reference.state.p), tolerance) << "P after " << what;
  EXPECT_LE(difference(fast.state.q, reference.state.q), tolerance) << "Q after " << what;
  EXPECT_LE(difference(fast.state.memory, reference.state.memory), tolerance)
      << "memory after " << what;
  EXPECT_LE(difference(fast.bucket.flat, reference.bucket.flat), tolerance)
      << "gradients after " << what;
}

void check(std::int64_t rows, std::int64_t columns, std::int64_t rank, bool memory,
           std::int64_t shift) {
  Case fast(rows, columns, rank, memory, shift);
  Case reference(rows, columns, rank, memory, shift);
  const auto fast_kernels = make_low_rank_kernels("fast");
  const auto reference_kernels = make_low_rank_kernels("reference");
  std::ostringstream what;
  what << rows << " x " << columns << ", rank " << rank << (memory ? ", memory" : "") << ", shift "
       << shift;
  const double tolerance = 1e-6 * static_cast<double>(rows + columns);
  fast_kernels->encode(fast.state, fast.bucket);
  reference_kernels->encode(reference.state, reference.bucket);
  expect_equal(fast, reference, tolerance, "encode, " + what.str());
  fast.state.p.copy_(reference.state.p);
  fast_kernels->project(fast.state, fast.bucket);
  reference_kernels->project(reference.state, reference.bucket);
  expect_equal(fast, reference, tolerance * static_cast<double>(columns), "project, " + what.str());
  fast.state.q.copy_(reference.state.q);
  const double largest = std::max(1.0, reference.state.q.abs().max().item<double>());
  fast_kernels->decode(fast.state, fast.bucket);
  reference_kernels->decode(reference.state, reference.bucket);
  const double p_largest = std::max(1.0, reference.state.p.abs().max().item<double>());
  expect_equal(fast, reference, 1e-5 * largest * p_largest, "decode, " + what.str());
}

TEST(FastKernels, AgreeWithTheReference) {
  for (const std::int64_t rows : {1, 2, 3, 5, 8, 19})
    for (const std::int64_t columns : {1, 2, 7, 16, 17, 40, 64, 127, 1100})
      for (std::int64_t rank = 1; rank <= 8; ++rank) {
        if (rank > std::min(rows, columns)) continue;
        for (const bool memory : {false, true})
          for (const std::int64_t shift : {0, 1, 10}) check(rows, columns, rank, memory, shift);
      }
}

TEST(FastKernels, AgreeAtEveryPlaceWithinAVector) {
  for (std::int64_t shift = 0; shift < 17; ++shift) check(9, 48, 3, true, shift);
}

TEST(FastKernels, AgreeWherePiecesOfColumnsMeet) {
  check(70, 4608, 1, true, 10);
  check(70, 4608, 4, true, 10);
  check(70, 4161, 2, true, 3);
}

TEST(FastKernels, LeaveHigherRanksToTheReference) { check(30, 20, 12, true, 0); }

TEST(FastKernels, AnElementDoesNotDependOnItsPlace) {
  // Workers may hold a gradient at different alignments, and must decode the same bits.
  Case first(6, 50, 2, true, 0);
  const auto kernels = make_low_rank_kernels("fast");
  kernels->decode(first.state, first.bucket);
  for (std::int64_t shift = 1; shift < 16; ++shift) {
    Case shifted(6, 50, 2, true, shift);
    shifted.state.p.copy_(first.state.p);
    shifted.state.q.copy_(first.state.q);
    kernels->decode(shifted.state, shifted.bucket);
    EXPECT_TRUE(at::equal(shifted.bucket.gradients[1], first.bucket.gradients[1])) << shift;
  }
}

TEST(Kernels, RefuseAnUnknownName) {
  try {
    make_low_rank_kernels("fats");
    FAIL() << "not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'fast'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace psgd::test
