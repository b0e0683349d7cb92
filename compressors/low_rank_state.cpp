#include "compressors/low_rank_state.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "compressors/elementwise.h"
#include "compressors/normal_draw.h"
#include "compressors/orthogonalise.h"

namespace psgd {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t product(Shape::const_iterator begin, Shape::const_iterator end) {
  return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
}

std::int64_t elements(const Shape& shape) { return product(shape.begin(), shape.end()); }

/// Lets matrices of equal shape follow each other, in the order of the first of each shape.
void group_equal_shapes(std::vector<LowRankMatrix>& matrices) {
  std::vector<LowRankMatrix> grouped;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const auto same_shape = [&](const LowRankMatrix& other) {
      return other.rows == matrices[i].rows && other.columns == matrices[i].columns;
    };
    if (std::any_of(matrices.begin(), matrices.begin() + static_cast<std::ptrdiff_t>(i),
                    same_shape))
      continue;
    std::copy_if(matrices.begin(), matrices.end(), std::back_inserter(grouped), same_shape);
  }
  matrices = std::move(grouped);
}

const char* const kFloat32 = "float32";
const char* const kFloat64 = "float64";

/// Column k of a transposed Q on the CPU.
template <class T>
bool cannot_be_used(const at::Tensor& q, std::int64_t k, bool only_not_finite) {
  const std::int64_t length = q.size(1);
  const T* const column = q.data_ptr<T>() + k * length;
  if (!is_dead_column(column, length)) return false;
  return !only_not_finite ||
         !std::all_of(column, column + length, [](T x) { return std::isfinite(x); });
}

}  // namespace

LowRankState::LowRankState(std::vector<Shape> shapes, const at::TensorOptions& options,
                           const LowRankPolicy& policy)
    : shapes_(std::move(shapes)) {
  const auto type = c10::typeMetaToScalarType(options.dtype());
  if (type != at::kFloat && type != at::kDouble)
    throw std::invalid_argument(
        std::string("PowerSGD compresses float32 and float64 gradients, but was given ") +
        c10::toString(type) + "; choose dtype float32 or float64");
  divide_tensors(policy);
  allocate(options, policy.error_memory);
}

void LowRankState::divide_tensors(const LowRankPolicy& policy) {
  std::int64_t memory_offset = 0;
  std::int64_t buffer_offset = 0;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const Shape& shape = shapes_[i];
    LowRankMatrix matrix;
    matrix.gradient = i;
    matrix.rows = shape.empty() ? 1 : shape[0];
    matrix.columns = shape.empty() ? 1 : product(shape.begin() + 1, shape.end());
    matrix.rank = std::min({matrix.rows, matrix.columns, policy.rank});
    const auto dimensions = static_cast<std::int64_t>(shape.size());
    if (matrix.rank > 0 && policy.compress(dimensions, matrix.rows, matrix.columns, matrix.rank)) {
      matrices.push_back(matrix);
    } else {
      whole.push_back({i, memory_offset, buffer_offset});
      buffer_offset += elements(shape);
    }
    memory_offset += elements(shape);
  }
  if (policy.group_equal_shapes) group_equal_shapes(matrices);
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const bool continues = policy.group_equal_shapes && i > 0 &&
                           matrices[i].rows == matrices[i - 1].rows &&
                           matrices[i].columns == matrices[i - 1].columns;
    if (!continues) group_sizes.push_back(0);
    ++group_sizes.back();
  }
}

void LowRankState::allocate(const at::TensorOptions& options, bool error_memory) {
  std::int64_t p_size = 0;
  std::int64_t q_size = 0;
  for (const auto& matrix : matrices) {
    p_size += matrix.rows * matrix.rank;
    q_size += matrix.columns * matrix.rank;
  }
  std::int64_t buffer_size = 0;
  for (const auto& tensor : whole) buffer_size += elements(shapes_[tensor.gradient]);
  p = at::zeros({p_size}, options);
  q = at::zeros({q_size}, options);
  buffer = at::zeros({buffer_size}, options);
  std::vector<at::Tensor> memories;
  if (error_memory) {
    std::int64_t all = 0;
    for (const auto& shape : shapes_) all += elements(shape);
    memory = at::zeros({all}, options);
    memories = memory_views();
  }
  std::int64_t p_offset = 0;
  std::int64_t q_offset = 0;
  for (auto& matrix : matrices) {
    matrix.p = p.narrow(0, p_offset, matrix.rows * matrix.rank).view({matrix.rank, matrix.rows});
    matrix.q =
        q.narrow(0, q_offset, matrix.columns * matrix.rank).view({matrix.rank, matrix.columns});
    if (error_memory) matrix.memory = memories[matrix.gradient].view({matrix.rows, matrix.columns});
    p_offset += matrix.p.numel();
    q_offset += matrix.q.numel();
  }
}

bool LowRankState::fits(const std::vector<at::Tensor>& gradients) const {
  if (gradients.size() != shapes_.size()) return false;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const bool same = gradients[i].sizes() == at::IntArrayRef(shapes_[i]) &&
                      gradients[i].scalar_type() == p.scalar_type() &&
                      gradients[i].device() == p.device();
    if (!same) return false;
  }
  return true;
}

std::vector<at::Tensor> LowRankState::memory_views() const {
  std::vector<at::Tensor> views;
  if (!memory.defined()) return views;
  std::int64_t offset = 0;
  for (const auto& shape : shapes_) {
    views.push_back(memory.narrow(0, offset, elements(shape)).view(shape));
    offset += elements(shape);
  }
  return views;
}

std::string LowRankState::layout() const {
  if (empty()) return "";
  std::ostringstream text;
  text << (p.scalar_type() == at::kDouble ? kFloat64 : kFloat32) << ';';
  for (const auto& shape : shapes_) {
    for (std::size_t d = 0; d < shape.size(); ++d) text << (d == 0 ? "" : "x") << shape[d];
    text << ';';
  }
  return text.str();
}

LowRankState LowRankState::from_layout(const std::string& layout, const LowRankPolicy& policy) {
  std::istringstream text(layout);
  std::string type;
  std::getline(text, type, ';');
  if (type != kFloat32 && type != kFloat64)
    throw std::invalid_argument("a bucket's layout must begin with float32 or float64, but is '" +
                                layout.substr(0, 40) +
                                "'; the checkpoint is damaged or of another version");
  std::vector<Shape> shapes;
  for (std::string one; std::getline(text, one, ';');) {
    std::istringstream sizes(one);
    Shape shape;
    for (std::string size; std::getline(sizes, size, 'x');) shape.push_back(std::stoll(size));
    shapes.push_back(std::move(shape));
  }
  return LowRankState(std::move(shapes),
                      at::TensorOptions().dtype(type == kFloat64 ? at::kDouble : at::kFloat),
                      policy);
}

void LowRankState::prepare(const std::vector<at::Tensor>& gradients, const LowRankPolicy& policy,
                           bool has_history) {
  if (fits(gradients)) return;
  std::vector<Shape> shapes;
  for (const auto& gradient : gradients) shapes.push_back(gradient.sizes().vec());
  LowRankState fresh(std::move(shapes), gradients.front().options(), policy);
  const bool only_moved = fresh.layout() == layout();
  if (has_history && !empty() && !only_moved)
    throw std::invalid_argument(
        "a bucket held " + layout() + " and now holds " + fresh.layout() +
        ", but its error memory and its Q belong to the former; start compression only "
        "after the buckets have been rebuilt");
  if (only_moved) {
    fresh.q.copy_(q);
    if (memory.defined()) fresh.memory.copy_(memory);
  }
  *this = std::move(fresh);
}

void LowRankState::visit(const std::string& prefix, const LowRankPolicy& policy, bool with_q,
                         StateVisitor& visitor) {
  std::string text = layout();
  visitor.text(prefix + ".layout", text);
  if (text.empty()) {
    *this = {};
    return;
  }
  if (text != layout()) *this = from_layout(text, policy);
  const auto visit_tensor = [&](const char* key, at::Tensor& ours) {
    at::Tensor shown = ours;
    visitor.tensor(prefix + key, shown);
    if (shown.is_same(ours)) return;
    if (shown.numel() != ours.numel())
      throw std::invalid_argument(prefix + key + " must have " + std::to_string(ours.numel()) +
                                  " elements, but has " + std::to_string(shown.numel()) +
                                  "; the checkpoint belongs to another configuration");
    ours.copy_(shown.view(ours.sizes()));
  };
  if (memory.defined()) visit_tensor(".memory", memory);
  if (with_q) visit_tensor(".q", q);
}

std::int64_t LowRankState::largest_rank() const {
  std::int64_t largest = 0;
  for (const auto& matrix : matrices) largest = std::max(largest, matrix.rank);
  return largest;
}

std::int64_t LowRankState::redraw_dead_columns(std::uint64_t seed,
                                               std::int64_t zero_is_dead_up_to) {
  std::int64_t redrawn = 0;
  std::uint64_t place = 0;
  for (auto& matrix : matrices) {
    const at::Tensor values = matrix.q.is_cpu() ? matrix.q : matrix.q.cpu();
    const bool only_not_finite = matrix.rank > zero_is_dead_up_to;
    for (std::int64_t k = 0; k < matrix.rank; ++k, ++place) {
      const bool redraw = values.scalar_type() == at::kDouble
                              ? cannot_be_used<double>(values, k, only_not_finite)
                              : cannot_be_used<float>(values, k, only_not_finite);
      if (!redraw) continue;
      fill_normal(matrix.q[k], mix_seed(seed, place));
      ++redrawn;
    }
  }
  return redrawn;
}

void pack_whole(LowRankState& state, const Bucket& bucket, bool use_memory) {
  for (const auto& tensor : state.whole) {
    const at::Tensor& gradient = bucket.gradients[tensor.gradient];
    if (!use_memory) {
      copy_to_range(state.buffer, tensor.buffer_offset, gradient);
      continue;
    }
    add_to_range(state.memory, tensor.memory_offset, gradient);
    copy_range(state.buffer, tensor.buffer_offset, state.memory, tensor.memory_offset,
               gradient.numel());
  }
}

void unpack_whole(LowRankState& state, Bucket& bucket, bool use_memory) {
  for (const auto& tensor : state.whole) {
    at::Tensor& gradient = bucket.gradients[tensor.gradient];
    copy_from_range(state.buffer, tensor.buffer_offset, gradient);
    if (use_memory) subtract_from_range(state.memory, tensor.memory_offset, gradient);
  }
}

}  // namespace psgd
