#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace psgd {

// All functions here take the matrix [length, rank] transposed: `columns` is [rank, length],
// contiguous, so that each column is one run of memory. float32 or float64; on another device than
// the CPU it is copied there and back (it is small). Dot products are summed in double. rank <=
// length.

/// Orthogonalises by Gram-Schmidt, column after column: subtract the projections on the columns
/// before it, then divide by (norm + epsilon). PyTorch: _orthogonalize_gram_schmidt; the paper's
/// code: orthogonalize, with epsilon 1e-8.
///
/// Where the originals break down, the result here is finite:
/// - A column of zeros stays zero. (PyTorch with epsilon 0: NaN, and from then on in every layer's
/// error.)
/// - Of a column that depends on the ones before it, only rounding noise is left after the
/// subtraction. The
///   originals normalise that noise as it is, not orthogonal to anything. Here the projections are
///   subtracted again, at most twice, until what is left keeps its size: then it is a direction
///   orthogonal to the others and is normalised, without epsilon (P still spans M Q, and one more
///   direction). If it keeps shrinking
/// there
///   is nothing left, and the column becomes zero (the others span M Q already). Epsilon would make
///   the
/// noise,
///   of a norm near 1e-8 itself, a short vector, and projections on that would stay in the columns
///   after it.
/// So with epsilon 0 every column is a unit vector orthogonal to the others, or zero. A column that
/// does not shrink below a tenth under the first subtraction is treated exactly as in the
/// originals. NaN and infinity in the input stay visible in the output.
void gram_schmidt(at::Tensor& columns, double epsilon);

/// Replaces the matrix by the Q of its QR decomposition, with the signs of LAPACK's Householder
/// reflections (geqrf and orgqr), as torch.linalg.qr. Always finite and orthonormal for finite
/// input, zero and dependent columns included.
void householder_q(at::Tensor& columns);

/// What PyTorch's hook does: Gram-Schmidt up to this rank, QR above (epsilon is then not used).
constexpr std::int64_t kLargestGramSchmidtRank = 2;
void ddp_orthogonalise(at::Tensor& columns, double epsilon);

/// The same on memory, allocating nothing.
template <class T>
void gram_schmidt(T* columns, std::int64_t length, std::int64_t rank, double epsilon);
template <class T>
void householder_q(T* columns, std::int64_t length, std::int64_t rank);

/// Whether a column of a warm-start Q can no longer be used: its norm is not finite, or so small
/// that its square is no normal number of its type (where the originals' norm is zero). A zero
/// column of Q makes a zero column of P, which makes a zero column of Q: it would stay zero for
/// ever after a layer had no gradient.
template <class T>
bool is_dead_column(const T* column, std::int64_t length);

}  // namespace psgd
