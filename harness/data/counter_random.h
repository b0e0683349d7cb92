#pragma once

#include <cstdint>

namespace psgd {

/// Mixes 64 bits so that each of them depends on all (the finaliser of splitmix64, Steele et al.
/// 2014).
constexpr std::uint64_t mix_bits(std::uint64_t bits) {
  bits ^= bits >> 30;
  bits *= 0xbf58476d1ce4e5b9;
  bits ^= bits >> 27;
  bits *= 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// 64 random bits that depend on the three numbers alone: no generator to share, to order or to
/// save.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  std::uint64_t bits = mix_bits(seed + golden);
  bits = mix_bits(bits + stream + golden);
  return mix_bits(bits + index + golden);
}

}  // namespace psgd
