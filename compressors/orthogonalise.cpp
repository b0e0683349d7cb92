#include "compressors/orthogonalise.h"

#include <cmath>
#include <limits>
#include <vector>

namespace psgd {
namespace {

/// Sum of a[i] b[i] in double: eight partial sums, so that the compiler may use vectors.
template <class T>
double dot(const T* a, const T* b, std::int64_t n) {
  constexpr int lanes = 8;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int k = 0; k < lanes; ++k)
      sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
  for (int k = 0; i < n; ++i, ++k) sums[k] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

template <class T>
double norm(const T* a, std::int64_t n) {
  return std::sqrt(dot(a, a, n));
}

/// to[i] += factor * from[i]
template <class T>
void add_multiple(T* to, double factor, const T* from, std::int64_t n) {
  const T f = static_cast<T>(factor);
  for (std::int64_t i = 0; i < n; ++i) to[i] += f * from[i];
}

template <class T>
void fill_zero(T* column, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) column[i] = 0;
}

struct Remainder {
  double norm = 0;         ///< 0 also when what is left is only rounding noise
  bool dependent = false;  ///< the column (nearly) depended on those before it
};

/// Subtracts from column `index` its projections on those before it.
template <class T>
Remainder subtract_projections(T* columns, std::int64_t length, std::int64_t index) {
  T* const column = columns + index * length;
  double size = norm(column, length);
  if (index == 0) return {size, false};
  constexpr int passes = 3;
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t k = 0; k < index; ++k) {
      const T* const earlier = columns + k * length;
      add_multiple(column, -dot(earlier, column, length), earlier, length);
    }
    const double left = norm(column, length);
    // The first subtraction may remove much, by cancellation; what a further one removes was noise.
    const bool kept = left >= (pass == 0 ? 0.1 : 0.5) * size;
    if (kept || !std::isfinite(left)) return {left, pass > 0};
    size = left;
  }
  return {0, true};
}

template <class T>
struct Reflection {
  /// Makes H = I - tau v vt with H x = (beta, 0, ..., 0); v[0] = 1 is not stored, v[1..] replaces
  /// x[1..]. Returns tau; 0 where x[1..] is zero already (H = I). As LAPACK's larfg.
  static double make(T* x, std::int64_t n) {
    const double alpha = static_cast<double>(x[0]);
    const double rest = norm(x + 1, n - 1);
    if (rest == 0) return 0;
    const double beta = -std::copysign(std::hypot(alpha, rest), alpha);
    for (std::int64_t i = 1; i < n; ++i)
      x[i] = static_cast<T>(static_cast<double>(x[i]) / (alpha - beta));
    return (beta - alpha) / beta;
  }

  /// y = H y.
  static void apply(const T* v, double tau, T* y, std::int64_t n) {
    const double factor = tau * (static_cast<double>(y[0]) + dot(v + 1, y + 1, n - 1));
    y[0] = static_cast<T>(static_cast<double>(y[0]) - factor);
    add_multiple(y + 1, -factor, v + 1, n - 1);
  }
};

/// Writes columns 0 .. rank-1 of H_0 H_1 ... H_(rank-1) over the reflections. As LAPACK's org2r.
template <class T>
void form_q(T* columns, std::int64_t length, std::int64_t rank, const double* taus) {
  for (std::int64_t j = rank - 1; j >= 0; --j) {
    T* const v = columns + j * length;
    const std::int64_t n = length - j;
    for (std::int64_t k = j + 1; k < rank; ++k)
      Reflection<T>::apply(v + j, taus[j], columns + k * length + j, n);
    for (std::int64_t i = j + 1; i < length; ++i)
      v[i] = static_cast<T>(-taus[j] * static_cast<double>(v[i]));
    v[j] = static_cast<T>(1 - taus[j]);
    fill_zero(v, j);
  }
}

/// Calls f(pointer, length, rank) on a CPU copy where needed.
template <class F>
void on_memory(at::Tensor& columns, F f) {
  if (columns.numel() == 0) return;
  if (!columns.is_cpu()) {
    at::Tensor copy = columns.cpu();
    on_memory(copy, f);
    columns.copy_(copy);
    return;
  }
  if (columns.scalar_type() == at::kDouble)
    f(columns.data_ptr<double>(), columns.size(1), columns.size(0));
  else
    f(columns.data_ptr<float>(), columns.size(1), columns.size(0));
}

}  // namespace

template <class T>
void gram_schmidt(T* columns, std::int64_t length, std::int64_t rank, double epsilon) {
  for (std::int64_t j = 0; j < rank; ++j) {
    T* const column = columns + j * length;
    const Remainder left = subtract_projections(columns, length, j);
    if (left.norm == 0) {
      fill_zero(column, length);
      continue;
    }
    const double divisor = left.dependent ? left.norm : left.norm + epsilon;
    for (std::int64_t i = 0; i < length; ++i)
      column[i] = static_cast<T>(static_cast<double>(column[i]) / divisor);
  }
}

template <class T>
void householder_q(T* columns, std::int64_t length, std::int64_t rank) {
  constexpr std::int64_t on_stack = 64;
  double stack[on_stack];
  std::vector<double> heap(rank > on_stack ? static_cast<std::size_t>(rank) : 0);
  double* const taus = rank > on_stack ? heap.data() : stack;
  for (std::int64_t j = 0; j < rank; ++j) {
    T* const v = columns + j * length + j;
    taus[j] = Reflection<T>::make(v, length - j);
    for (std::int64_t k = j + 1; k < rank; ++k)
      Reflection<T>::apply(v, taus[j], columns + k * length + j, length - j);
  }
  form_q(columns, length, rank, taus);
}

template <class T>
bool is_dead_column(const T* column, std::int64_t length) {
  const double squares = dot(column, column, length);
  return !std::isfinite(squares) || squares < static_cast<double>(std::numeric_limits<T>::min());
}

template void gram_schmidt(float*, std::int64_t, std::int64_t, double);
template void gram_schmidt(double*, std::int64_t, std::int64_t, double);
template void householder_q(float*, std::int64_t, std::int64_t);
template void householder_q(double*, std::int64_t, std::int64_t);
template bool is_dead_column(const float*, std::int64_t);
template bool is_dead_column(const double*, std::int64_t);

void gram_schmidt(at::Tensor& columns, double epsilon) {
  on_memory(columns, [&](auto* data, std::int64_t length, std::int64_t rank) {
    gram_schmidt(data, length, rank, epsilon);
  });
}

void householder_q(at::Tensor& columns) {
  on_memory(columns, [](auto* data, std::int64_t length, std::int64_t rank) {
    householder_q(data, length, rank);
  });
}

void ddp_orthogonalise(at::Tensor& columns, double epsilon) {
  if (columns.size(0) <= kLargestGramSchmidtRank)
    gram_schmidt(columns, epsilon);
  else
    householder_q(columns);
}

}  // namespace psgd
