#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace psgd::test {

/// Element `i` of the gradient of tensor `k` on worker `w` at step `t`, as in the files of
/// tests/golden: a hash that spreads over -0.5 .. 0.5, different in every element, on every worker,
/// at every step.
inline float golden_value(std::uint32_t i, std::uint32_t k, std::uint32_t w, std::uint32_t t) {
  std::uint32_t h = i * 0x9E3779B1U + k * 0x85EBCA77U + w * 0xC2B2AE3DU + t * 0x27D4EB2FU;
  h ^= h >> 16;
  h *= 0x85EBCA6BU;
  h ^= h >> 13;
  h *= 0xC2B2AE35U;
  h ^= h >> 16;
  return static_cast<float>(static_cast<double>(h) / 4294967296.0 - 0.5);
}

inline at::Tensor golden_gradient(at::IntArrayRef shape, int k, int w, int t) {
  at::Tensor gradient = at::empty(shape, at::kFloat);
  float* const values = gradient.data_ptr<float>();
  for (std::int64_t i = 0; i < gradient.numel(); ++i)
    values[i] = golden_value(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(k),
                             static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(t));
  return gradient;
}

}  // namespace psgd::test
