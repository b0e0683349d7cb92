#include "compressors/fast_kernels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compressors/simd.h"

namespace psgd::fast {
namespace {

using Vector = FloatVector;
constexpr std::int64_t kWidth = Vector::width;

/// Rows of M that a loop takes at once, so that a vector of Q is loaded once for all of them. As
/// many as the registers hold with `per_row` of them a row and `shared` for all.
constexpr int rows_at_once(int per_row, int shared) {
  for (const int rows : {8, 4, 2})
    if (rows * per_row + shared <= Vector::registers) return rows;
  return 1;
}

/// body(column, count) for each vector of a row: count is kWidth but for the last.
template <class Full, class Tail>
inline void for_columns(std::int64_t columns, Full full, Tail tail) {
  std::int64_t c = 0;
  for (; c + kWidth <= columns; c += kWidth) full(c);
  if (c < columns) tail(c, columns - c);
}

// ---- encode: memory += gradient, P = M Q
// ---------------------------------------------------------------

template <int Rank, int Rows, bool Memory>
void encode_rows(const MatrixView& m, std::int64_t row) {
  const std::int64_t columns = m.columns;
  const float* const gradient = m.gradient + row * columns;
  float* const memory = Memory ? m.memory + row * columns : nullptr;
  Vector sums[Rows][Rank];
  for (auto& of_row : sums)
    for (auto& sum : of_row) sum = Vector::zero();
  const auto add = [&](std::int64_t c, auto load, auto store) {
    Vector q[Rank];
    for (int k = 0; k < Rank; ++k) {
      q[k] = load(m.q + k * columns + c);
      q[k].keep_in_register();
    }
    for (int i = 0; i < Rows; ++i) {
      Vector x = load(gradient + i * columns + c);
      if constexpr (Memory) {
        x = x + load(memory + i * columns + c);
        store(memory + i * columns + c, x);
      }
      for (int k = 0; k < Rank; ++k) sums[i][k] = fma(x, q[k], sums[i][k]);
    }
  };
  for_columns(
      columns,
      [&](std::int64_t c) {
        add(
            c, [](const float* p) { return Vector::load(p); },
            [](float* p, Vector x) { x.store(p); });
      },
      [&](std::int64_t c, std::int64_t count) {
        add(
            c, [count](const float* p) { return Vector::load(p, count); },
            [count](float* p, Vector x) { x.store(p, count); });
      });
  for (int i = 0; i < Rows; ++i)
    for (int k = 0; k < Rank; ++k) m.p[k * m.rows + row + i] = sums[i][k].sum();
}

template <int Rank, bool Memory>
void encode_all(const MatrixView& m) {
  constexpr int rows = std::min(4, rows_at_once(Rank + 1, Rank));
  std::int64_t row = 0;
  for (; row + rows <= m.rows; row += rows) encode_rows<Rank, rows, Memory>(m, row);
  for (; row < m.rows; ++row) encode_rows<Rank, 1, Memory>(m, row);
}

// ---- project: Q = Mt P
// ---------------------------------------------------------------------------------

/// Adds the rows from `row` on to columns `begin` .. `end` of Q, or sets these if `first`.
template <int Rank, int Rows>
void project_rows(const MatrixView& m, std::int64_t row, std::int64_t begin, std::int64_t end,
                  bool first) {
  const std::int64_t columns = m.columns;
  const float* const input = (m.memory != nullptr ? m.memory : m.gradient) + row * columns + begin;
  float* const out = m.q + begin;
  Vector p[Rows][Rank];
  for (int i = 0; i < Rows; ++i)
    for (int k = 0; k < Rank; ++k) p[i][k] = Vector::all(m.p[k * m.rows + row + i]);
  const auto add = [&](std::int64_t c, auto load, auto store) {
    Vector q[Rank];
    for (int k = 0; k < Rank; ++k) q[k] = first ? Vector::zero() : load(out + k * columns + c);
    for (int i = 0; i < Rows; ++i) {
      Vector x = load(input + i * columns + c);
      x.keep_in_register();
      for (int k = 0; k < Rank; ++k) q[k] = fma(p[i][k], x, q[k]);
    }
    for (int k = 0; k < Rank; ++k) store(out + k * columns + c, q[k]);
  };
  for_columns(
      end - begin,
      [&](std::int64_t c) {
        add(
            c, [](const float* at) { return Vector::load(at); },
            [](float* at, Vector x) { x.store(at); });
      },
      [&](std::int64_t c, std::int64_t count) {
        add(
            c, [count](const float* at) { return Vector::load(at, count); },
            [count](float* at, Vector x) { x.store(at, count); });
      });
}

/// Q is read and written for every few rows, so it is made piece by piece, each small enough for
/// the first-level cache. From the last row to the first: encode has just left the last ones in the
/// cache.
template <int Rank>
void project_all(const MatrixView& m) {
  constexpr int rows = rows_at_once(Rank, Rank + 1);
  constexpr std::int64_t piece = 4096 / Rank / kWidth * kWidth;  // 16 KiB of Q
  for (std::int64_t begin = 0; begin < m.columns; begin += piece) {
    const std::int64_t end = std::min(m.columns, begin + piece);
    std::int64_t left = m.rows;
    for (; left >= rows; left -= rows)
      project_rows<Rank, rows>(m, left - rows, begin, end, left == m.rows);
    for (; left > 0; --left) project_rows<Rank, 1>(m, left - 1, begin, end, left == m.rows);
  }
}

// ---- decode: gradient = P Qt, memory -= gradient
// -------------------------------------------------------

template <int Rank, int Rows, bool Memory>
void decode_rows(const MatrixView& m, std::int64_t row) {
  const std::int64_t columns = m.columns;
  float* const gradient = m.gradient + row * columns;
  float* const memory = Memory ? m.memory + row * columns : nullptr;
  Vector p[Rows][Rank];
  for (int i = 0; i < Rows; ++i)
    for (int k = 0; k < Rank; ++k) p[i][k] = Vector::all(m.p[k * m.rows + row + i]);
  const auto write = [&](std::int64_t c, auto load, auto store, auto store_gradient) {
    Vector q[Rank];
    for (int k = 0; k < Rank; ++k) {
      q[k] = load(m.q + k * columns + c);
      q[k].keep_in_register();
    }
    for (int i = 0; i < Rows; ++i) {
      Vector x = p[i][0] * q[0];
      for (int k = 1; k < Rank; ++k) x = fma(p[i][k], q[k], x);
      if constexpr (Memory) store(memory + i * columns + c, load(memory + i * columns + c) - x);
      store_gradient(gradient + i * columns + c, x);
    }
  };
  const auto part = [&](std::int64_t c, std::int64_t count) {
    const auto store = [count](float* at, Vector x) { x.store(at, count); };
    write(
        c, [count](const float* at) { return Vector::load(at, count); }, store, store);
  };
  std::int64_t c = std::min(columns, elements_to_alignment(gradient, kWidth));
  if (c > 0) part(0, c);
  for (; c + kWidth <= columns; c += kWidth)
    write(
        c, [](const float* at) { return Vector::load(at); },
        [](float* at, Vector x) { x.store(at); }, [](float* at, Vector x) { x.stream(at); });
  if (c < columns) part(c, columns - c);
}

template <int Rank, bool Memory>
void decode_all(const MatrixView& m) {
  constexpr int most = std::min(4, rows_at_once(Rank, Rank + 2));
  std::int64_t row = 0;
  // Rows that begin at different places within a vector cannot be streamed together.
  if (m.columns % kWidth == 0)
    for (; row + most <= m.rows; row += most) decode_rows<Rank, most, Memory>(m, row);
  for (; row < m.rows; ++row) decode_rows<Rank, 1, Memory>(m, row);
  end_streaming();
}

// ---- choice of the loop for a rank
// ---------------------------------------------------------------------

using Loop = void (*)(const MatrixView&);
using Loops = std::array<Loop, static_cast<std::size_t>(kLargestRank)>;

template <std::size_t... Index>
constexpr Loops encode_loops(bool memory, std::index_sequence<Index...>) {
  return {(memory ? encode_all<Index + 1, true> : encode_all<Index + 1, false>)...};
}

template <std::size_t... Index>
constexpr Loops project_loops(std::index_sequence<Index...>) {
  return {project_all<Index + 1>...};
}

template <std::size_t... Index>
constexpr Loops decode_loops(bool memory, std::index_sequence<Index...>) {
  return {(memory ? decode_all<Index + 1, true> : decode_all<Index + 1, false>)...};
}

using Ranks = std::make_index_sequence<static_cast<std::size_t>(kLargestRank)>;

Loop at_rank(const Loops& loops, const MatrixView& matrix) {
  return loops[static_cast<std::size_t>(matrix.rank - 1)];
}

}  // namespace

void encode(const MatrixView& matrix) {
  static constexpr Loops with = encode_loops(true, Ranks{});
  static constexpr Loops without = encode_loops(false, Ranks{});
  at_rank(matrix.memory != nullptr ? with : without, matrix)(matrix);
}

void project(const MatrixView& matrix) {
  static constexpr Loops loops = project_loops(Ranks{});
  at_rank(loops, matrix)(matrix);
}

void decode(const MatrixView& matrix) {
  static constexpr Loops with = decode_loops(true, Ranks{});
  static constexpr Loops without = decode_loops(false, Ranks{});
  at_rank(matrix.memory != nullptr ? with : without, matrix)(matrix);
}

}  // namespace psgd::fast
