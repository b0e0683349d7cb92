#include "compressors/orthogonalise.h"

#include <gtest/gtest.h>

#include <limits>

namespace psgd::test {
namespace {

/// The textbook: what both originals do where they do not break down. `matrix` [length, rank].
at::Tensor plain_gram_schmidt(at::Tensor matrix, double epsilon) {
  matrix = matrix.clone();
  for (std::int64_t i = 0; i < matrix.size(1); ++i) {
    at::Tensor column = matrix.narrow(1, i, 1);
    column.div_(column.norm() + epsilon);
    if (i + 1 == matrix.size(1)) break;
    at::Tensor rest = matrix.narrow(1, i + 1, matrix.size(1) - i - 1);
    rest.sub_((column * rest).sum(0, true) * column);
  }
  return matrix;
}

at::Tensor transposed(const at::Tensor& matrix) { return matrix.t().contiguous(); }

at::Tensor random_matrix(std::int64_t length, std::int64_t rank, at::ScalarType type = at::kFloat) {
  at::Generator generator =
      at::detail::createCPUGenerator(static_cast<std::uint64_t>(length * 10 + rank));
  return at::randn({length, rank}, generator, at::TensorOptions().dtype(type));
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

/// How far the columns are from being unit vectors orthogonal to each other, zero columns aside.
double defect(const at::Tensor& columns) {
  const at::Tensor products = at::mm(columns.to(at::kDouble), columns.to(at::kDouble).t());
  const at::Tensor is_zero = at::diagonal(products) == 0;
  const at::Tensor expected = at::diag(at::where(is_zero, at::zeros_like(at::diagonal(products)),
                                                 at::ones_like(at::diagonal(products))));
  return largest_difference(products, expected);
}

TEST(GramSchmidt, GivesTheTextbooksResult) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const double epsilon : {0.0, 1e-8})
      for (const std::int64_t length : {8, 9, 33, 500})
        for (const std::int64_t rank : {1, 2, 3, 8}) {
          const at::Tensor matrix = random_matrix(length, rank, type);
          at::Tensor columns = transposed(matrix);
          gram_schmidt(columns, epsilon);
          EXPECT_LT(largest_difference(columns.t(), plain_gram_schmidt(matrix, epsilon)), 1e-5)
              << length << " x " << rank;
        }
}

TEST(GramSchmidt, LeavesAZeroColumnZero) {
  at::Tensor columns = transposed(random_matrix(12, 3));
  columns[1].zero_();
  gram_schmidt(columns, 0);
  EXPECT_TRUE(at::isfinite(columns).all().item<bool>());
  EXPECT_EQ(columns[1].abs().max().item<float>(), 0);
  EXPECT_LT(defect(columns), 1e-6);
}

TEST(GramSchmidt, MakesDependentColumnsOrthogonalOrZero) {
  for (const double epsilon : {0.0, 1e-8})
    for (int seed = 0; seed < 40; ++seed) {
      const auto type = seed % 2 == 0 ? at::kFloat : at::kDouble;
      at::Tensor columns = transposed(random_matrix(40 + seed, 8, type));
      columns[1] = columns[0] * 3;
      columns[3] = columns[0] - columns[2] * 0.7;
      columns[5].zero_();
      columns[7] = columns[6] + columns[4] * 1e-7;
      const at::Tensor before = columns.clone();
      gram_schmidt(columns, epsilon);
      EXPECT_LT(defect(columns), 1e-5) << seed;
      // The span is kept: projecting the columns on the result changes nothing.
      const at::Tensor projected = at::mm(at::mm(before, columns.t()), columns);
      EXPECT_LT(largest_difference(projected, before), 2e-5) << seed;
    }
}

TEST(GramSchmidt, KeepsNotANumberVisible) {
  at::Tensor columns = transposed(random_matrix(6, 2));
  columns[0][3] = std::numeric_limits<float>::quiet_NaN();
  gram_schmidt(columns, 0);
  EXPECT_TRUE(at::isnan(columns).any().item<bool>());
}

TEST(Householder, GivesLapacksQWithItsSigns) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const std::int64_t length : {3, 8, 9, 33, 500})
      for (const std::int64_t rank : {1, 2, 3, 4, 8}) {
        if (rank > length) continue;
        const at::Tensor matrix = random_matrix(length, rank, type);
        at::Tensor columns = transposed(matrix);
        householder_q(columns);
        const at::Tensor expected = std::get<0>(at::linalg_qr(matrix));
        EXPECT_LT(largest_difference(columns.t(), expected), 2e-6) << length << " x " << rank;
      }
}

TEST(Householder, GivesLapacksQForZeroColumns) {
  for (const auto& zeros :
       std::vector<std::vector<std::int64_t>>{{0}, {1}, {3}, {0, 1, 2, 3}, {0, 2}}) {
    at::Tensor columns = transposed(random_matrix(10, 4));
    for (const auto k : zeros) columns[k].zero_();
    const at::Tensor expected = std::get<0>(at::linalg_qr(columns.t()));
    householder_q(columns);
    EXPECT_LT(largest_difference(columns.t(), expected), 1e-6);
    EXPECT_LT(defect(columns), 1e-6);
  }
}

TEST(Householder, GivesOrthonormalColumnsForDependentOnes) {
  at::Tensor columns = transposed(random_matrix(30, 5));
  columns[2] = columns[0] - columns[1];
  columns[4] = columns[3];
  const at::Tensor before = columns.clone();
  householder_q(columns);
  EXPECT_LT(defect(columns), 1e-5);
  EXPECT_LT(largest_difference(at::mm(at::mm(before, columns.t()), columns), before), 1e-5);
}

TEST(DeadColumn, IsZeroOrTooSmallOrNotFinite) {
  std::vector<float> column(5, 0.0F);
  EXPECT_TRUE(is_dead_column(column.data(), 5));
  column[2] = 1e-25F;
  EXPECT_TRUE(is_dead_column(column.data(), 5));
  column[2] = 1e-15F;
  EXPECT_FALSE(is_dead_column(column.data(), 5));
  column[2] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(is_dead_column(column.data(), 5));
  column[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(is_dead_column(column.data(), 5));
}

}  // namespace
}  // namespace psgd::test
