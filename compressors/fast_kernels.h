#pragma once

#include <cstdint>

namespace psgd::fast {

/// The ranks that have loops of their own.
constexpr std::int64_t kLargestRank = 8;

/// A matrix [rows, columns] and its factors, float32, all contiguous. P and Q are transposed:
/// [rank, rows] and [rank, columns]. 1 <= rank <= kLargestRank, rank <= min(rows, columns).
struct MatrixView {
  float* gradient;
  float* memory;  ///< nullptr without error feedback: then the input M is the gradient
  float* p;
  float* q;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t rank;
};

/// memory = gradient + memory (if there is memory); P = M Q. Reads the matrix and its memory once.
void encode(const MatrixView& matrix);
/// Q = Mt P. Reads the input once.
void project(const MatrixView& matrix);
/// gradient = P Qt; memory = memory - gradient (if there is memory). Reads and writes memory once,
/// writes the gradient past the cache.
void decode(const MatrixView& matrix);

}  // namespace psgd::fast
