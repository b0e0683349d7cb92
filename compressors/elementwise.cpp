#include "compressors/elementwise.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace psgd {
namespace {

/// Calls loop(T{}) with the element type and returns true if plain loops can serve the tensor.
template <class Loop>
bool on_cpu(const at::Tensor& tensor, Loop loop) {
  if (!tensor.is_cpu()) return false;
  if (tensor.scalar_type() == at::kFloat) return loop(float{}), true;
  if (tensor.scalar_type() == at::kDouble) return loop(double{}), true;
  return false;
}

at::Tensor range(const at::Tensor& flat, std::int64_t offset, const at::Tensor& like) {
  return flat.narrow(0, offset, like.numel()).view(like.sizes());
}

template <class T>
T* data_at(const at::Tensor& flat, std::int64_t offset) {
  return flat.data_ptr<T>() + offset;
}

}  // namespace

void divide(at::Tensor& values, std::int64_t divisor) {
  if (divisor == 1) return;
  const bool done = on_cpu(values, [&](auto type) {
    using T = decltype(type);
    T* const x = values.data_ptr<T>();
    const T by = static_cast<T>(divisor);
    const std::int64_t n = values.numel();
    if (std::has_single_bit(static_cast<std::uint64_t>(divisor))) {
      // 1 / 2^k is exact, so the product has the quotient's bits; division would take longer than
      // memory does.
      const T factor = 1 / by;
      for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
    } else {
      for (std::int64_t i = 0; i < n; ++i) x[i] /= by;
    }
  });
  if (!done) values.div_(divisor);
}

void add_to_range(at::Tensor& flat, std::int64_t offset, const at::Tensor& values) {
  const bool done = on_cpu(values, [&](auto type) {
    using T = decltype(type);
    T* const to = data_at<T>(flat, offset);
    const T* const from = values.data_ptr<T>();
    const std::int64_t n = values.numel();
    for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
  });
  if (!done) range(flat, offset, values).add_(values);
}

void subtract_from_range(at::Tensor& flat, std::int64_t offset, const at::Tensor& values) {
  const bool done = on_cpu(values, [&](auto type) {
    using T = decltype(type);
    T* const to = data_at<T>(flat, offset);
    const T* const from = values.data_ptr<T>();
    const std::int64_t n = values.numel();
    for (std::int64_t i = 0; i < n; ++i) to[i] -= from[i];
  });
  if (!done) range(flat, offset, values).sub_(values);
}

void copy_to_range(at::Tensor& flat, std::int64_t offset, const at::Tensor& values) {
  const bool done = on_cpu(values, [&](auto type) {
    using T = decltype(type);
    if (values.numel() > 0)
      std::memcpy(data_at<T>(flat, offset), values.data_ptr<T>(), sizeof(T) * values.numel());
  });
  if (!done) range(flat, offset, values).copy_(values);
}

void copy_from_range(const at::Tensor& flat, std::int64_t offset, at::Tensor& values) {
  const bool done = on_cpu(values, [&](auto type) {
    using T = decltype(type);
    if (values.numel() > 0)
      std::memcpy(values.data_ptr<T>(), data_at<T>(flat, offset), sizeof(T) * values.numel());
  });
  if (!done) values.copy_(range(flat, offset, values));
}

void copy_range(at::Tensor& to, std::int64_t to_offset, const at::Tensor& from,
                std::int64_t from_offset, std::int64_t size) {
  const bool done = on_cpu(to, [&](auto type) {
    using T = decltype(type);
    if (size > 0)
      std::memcpy(data_at<T>(to, to_offset), data_at<T>(from, from_offset), sizeof(T) * size);
  });
  if (!done) to.narrow(0, to_offset, size).copy_(from.narrow(0, from_offset, size));
}

std::int64_t total_elements(const std::vector<at::Tensor>& tensors) {
  std::int64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.numel();
  return total;
}

void pack(const std::vector<at::Tensor>& tensors, at::Tensor& flat) {
  std::int64_t offset = 0;
  for (const auto& tensor : tensors) {
    copy_to_range(flat, offset, tensor);
    offset += tensor.numel();
  }
}

void unpack(const at::Tensor& flat, std::vector<at::Tensor>& tensors) {
  std::int64_t offset = 0;
  for (auto& tensor : tensors) {
    copy_from_range(flat, offset, tensor);
    offset += tensor.numel();
  }
}

}  // namespace psgd
