#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compressors/scheme.h"

namespace psgd {

/// A gradient seen as a matrix [rows, columns] = [first dimension, all others] and sent as P Qt.
struct LowRankMatrix {
  std::size_t gradient = 0;  ///< its place in Bucket::gradients
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;  ///< clipped to min(rows, columns)
  at::Tensor memory;      ///< [rows, columns], view of LowRankState::memory; undefined without
  at::Tensor p;           ///< [rank, rows], P transposed, view of LowRankState::p
  at::Tensor q;           ///< [rank, columns], Q transposed, view of LowRankState::q
};

/// A gradient that is sent as it is.
struct WholeTensor {
  std::size_t gradient = 0;
  std::int64_t memory_offset = 0;
  std::int64_t buffer_offset = 0;
};

/// What the two PowerSGD schemes decide differently about a bucket's tensors.
struct LowRankPolicy {
  std::int64_t rank = 1;
  bool error_memory = true;
  /// Whether P and Q of tensors with equal matrix shapes lie next to each other (PyTorch's hook),
  /// in the order of the first of each shape; else all in the order of the bucket (the paper's
  /// code).
  bool group_equal_shapes = false;
  /// Whether to compress a tensor of this many dimensions with these rows, columns and (clipped)
  /// rank.
  std::function<bool(std::int64_t dimensions, std::int64_t rows, std::int64_t columns,
                     std::int64_t rank)>
      compress;
};

/// A bucket's division into matrices and whole tensors, with everything allocated that a step
/// needs.
///
/// P and Q of all matrices lie in one piece of memory each, so that one all-reduce carries them.
/// They are kept transposed, so that a column is contiguous: for the loops over rows of M as for
/// orthogonalisation.
class LowRankState {
 public:
  LowRankState() = default;
  /// Lays out `shapes`; memory is zero, P and Q are not initialised. `options`: type and device.
  LowRankState(std::vector<std::vector<std::int64_t>> shapes, const at::TensorOptions& options,
               const LowRankPolicy& policy);

  /// Lays this out anew unless it was made for tensors like these, in this order. Keeps the
  /// contents when only the device differs (after loading). Throws std::invalid_argument when the
  /// tensors are others and this `has_history`: error memory or a warm-start Q that would be lost.
  void prepare(const std::vector<at::Tensor>& gradients, const LowRankPolicy& policy,
               bool has_history);
  bool fits(const std::vector<at::Tensor>& gradients) const;
  bool empty() const { return shapes_.empty(); }
  bool error_memory() const { return memory.defined(); }

  /// Error memory, one tensor per gradient in its shape.
  std::vector<at::Tensor> memory_views() const;

  /// The shapes as text, e.g. "float32;8x3x3x3;8;" ("" while empty), and a state laid out from such
  /// a text. Throws std::invalid_argument.
  std::string layout() const;
  static LowRankState from_layout(const std::string& layout, const LowRankPolicy& policy);

  /// Shows layout, error memory and, if `with_q`, Q to a visitor under keys that begin with
  /// `prefix`. A layout that comes back changed (loading) makes this anew.
  void visit(const std::string& prefix, const LowRankPolicy& policy, bool with_q,
             StateVisitor& visitor);

  std::int64_t largest_rank() const;

  /// Redraws the columns of a warm-start Q that can no longer be used (see is_dead_column). In
  /// matrices of a rank above `zero_is_dead_up_to`, columns of zeros are left alone (QR makes a
  /// usable Q of them). The numbers depend on `seed` and the column's place alone, so all workers
  /// draw the same. Returns how many it redrew.
  std::int64_t redraw_dead_columns(std::uint64_t seed, std::int64_t zero_is_dead_up_to);

  std::vector<LowRankMatrix> matrices;   ///< in the order of their P and Q
  std::vector<std::size_t> group_sizes;  ///< matrices of equal shape that follow each other
  std::vector<WholeTensor> whole;        ///< in the order of the bucket
  at::Tensor
      memory;    ///< error of all gradients one after the other; undefined without error feedback
  at::Tensor p;  ///< all P
  at::Tensor q;  ///< all Q
  at::Tensor buffer;  ///< all whole tensors, to be all-reduced

 private:
  void divide_tensors(const LowRankPolicy& policy);
  void allocate(const at::TensorOptions& options, bool error_memory);

  std::vector<std::vector<std::int64_t>> shapes_;
};

/// For the tensors that are not compressed, with error memory: memory = gradient + memory; buffer =
/// memory. Without: buffer = gradient.
void pack_whole(LowRankState& state, const Bucket& bucket, bool use_memory);
/// gradient = buffer (their mean by now); with error memory: memory = memory - gradient.
void unpack_whole(LowRankState& state, Bucket& bucket, bool use_memory);

}  // namespace psgd
