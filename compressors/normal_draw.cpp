#include "compressors/normal_draw.h"

#include <ATen/CPUGeneratorImpl.h>

namespace psgd {

at::Generator seeded_generator(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

at::Tensor draw_normal(at::IntArrayRef sizes, at::ScalarType type, at::Generator& generator) {
  return at::randn(sizes, generator, at::TensorOptions().dtype(type));
}

at::Tensor draw_normal(at::IntArrayRef sizes, at::ScalarType type, std::uint64_t seed) {
  at::Generator generator = seeded_generator(seed);
  return draw_normal(sizes, type, generator);
}

void fill_normal(at::Tensor values, std::uint64_t seed) {
  values.copy_(draw_normal(values.sizes(), values.scalar_type(), seed));
}

std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15ULL * (number + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace psgd
