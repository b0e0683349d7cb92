#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace psgd {

/// half[offset + i] = half(half(values[i]) / divisor), each step rounded to nearest even as in
/// PyTorch. Returns how many values that are finite and not zero became zero. `half`: 1-D float16;
/// `values`: any shape, contiguous, float32 or float64, on the same device.
std::int64_t to_half_divided(const at::Tensor& values, std::int64_t divisor, at::Tensor& half,
                             std::int64_t offset);

/// values[i] = half[offset + i], exact.
void from_half(const at::Tensor& half, std::int64_t offset, at::Tensor& values);

}  // namespace psgd
