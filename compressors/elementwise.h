#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace psgd {

// Loops over contiguous tensors that a scheme runs at every step. On the CPU, for float32 and
// float64, they are plain loops and allocate nothing (an ATen operator allocates its views and its
// scalars); for any other type or device they call ATen.

/// values[i] /= divisor. A true division, as the originals': a product with 1/divisor rounds
/// differently.
void divide(at::Tensor& values, std::int64_t divisor);

/// flat[offset + i] += values[i]. `flat` is 1-D; types and devices are equal here and below.
void add_to_range(at::Tensor& flat, std::int64_t offset, const at::Tensor& values);
/// flat[offset + i] -= values[i].
void subtract_from_range(at::Tensor& flat, std::int64_t offset, const at::Tensor& values);
/// flat[offset + i] = values[i].
void copy_to_range(at::Tensor& flat, std::int64_t offset, const at::Tensor& values);
/// values[i] = flat[offset + i].
void copy_from_range(const at::Tensor& flat, std::int64_t offset, at::Tensor& values);

/// to[to_offset + i] = from[from_offset + i] for `size` elements of two 1-D tensors.
void copy_range(at::Tensor& to, std::int64_t to_offset, const at::Tensor& from,
                std::int64_t from_offset, std::int64_t size);

/// The number of elements of all tensors together.
std::int64_t total_elements(const std::vector<at::Tensor>& tensors);
/// Copies the tensors one after the other into `flat`, which has total_elements(tensors) elements.
void pack(const std::vector<at::Tensor>& tensors, at::Tensor& flat);
/// The reverse.
void unpack(const at::Tensor& flat, std::vector<at::Tensor>& tensors);

}  // namespace psgd
