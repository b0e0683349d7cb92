#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace psgd {

/// Standard normal numbers, the same as `torch.manual_seed(seed); torch.randn(sizes, dtype=...)` on
/// the CPU. The global generator is left alone.
at::Tensor draw_normal(at::IntArrayRef sizes, at::ScalarType type, std::uint64_t seed);

/// The same from a generator that has been seeded: for several tensors after one seed.
at::Tensor draw_normal(at::IntArrayRef sizes, at::ScalarType type, at::Generator& generator);
at::Generator seeded_generator(std::uint64_t seed);

/// Fills `values` (float32 or float64, any device) with standard normal numbers that depend on
/// `seed` alone. A stream of our own, for draws that the originals do not make: theirs stay
/// undisturbed.
void fill_normal(at::Tensor values, std::uint64_t seed);

/// Mixes a number into a seed (splitmix64).
std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t number);

}  // namespace psgd
