#include "compressors/half_conversion.h"

#include <algorithm>
#include <bit>

#include "compressors/half_vector.h"

namespace psgd {
namespace {

std::uint16_t* bits_of(at::Half* half) { return reinterpret_cast<std::uint16_t*>(half); }
const std::uint16_t* bits_of(const at::Half* half) {
  return reinterpret_cast<const std::uint16_t*>(half);
}

std::int64_t to_half_divided_loop(const float* values, float divisor, at::Half* half,
                                  std::int64_t n) {
  std::int64_t flushed = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    half[i] = at::Half(static_cast<float>(at::Half(values[i])) / divisor);
    flushed += (half[i].x & 0x7FFF) == 0 && values[i] != 0;
  }
  return flushed;
}

void from_half_loop(const at::Half* half, float* values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = half[i];
}

#ifdef PSGD_HALF_VECTOR

// Gradients are larger than the cache: written past it, in whole cache lines, the memory of the
// results need not be read first. That halves the time of from_half_cpu(); to_half_divided_cpu(),
// which also asks for values ahead of their turn, takes three quarters of it.
constexpr std::int64_t kBlock = 64 / sizeof(at::Half);
constexpr std::int64_t kAhead = 16 * kBlock;

std::int64_t to_half_divided_cpu(const float* values, float divisor, at::Half* half,
                                 std::int64_t n) {
  const FloatVector by = FloatVector::all(divisor);
  std::int64_t i = std::min(n, elements_to_alignment(bits_of(half), kBlock));
  std::int64_t flushed = to_half_divided_loop(values, divisor, half, i);
  for (; i + kBlock <= n; i += kBlock) {
    __builtin_prefetch(values + i + kAhead);
    __builtin_prefetch(values + i + kAhead + kBlock / 2);
    for (std::int64_t k = i; k < i + kBlock; k += HalfVector::width) {
      const FloatVector x = FloatVector::load(values + k);
      const HalfVector result = HalfVector::rounded(HalfVector::rounded(x).widened() / by);
      result.stream(bits_of(half + k));
      flushed += std::popcount(result.zeros() & HalfVector::not_zero(x));
    }
  }
  end_streaming();
  return flushed + to_half_divided_loop(values + i, divisor, half + i, n - i);
}

void from_half_cpu(const at::Half* half, float* values, std::int64_t n) {
  std::int64_t i = std::min(n, elements_to_alignment(values, FloatVector::width));
  from_half_loop(half, values, i);
  for (; i + HalfVector::width <= n; i += HalfVector::width)
    HalfVector::load(bits_of(half + i)).widened().stream(values + i);
  end_streaming();
  from_half_loop(half + i, values + i, n - i);
}

#else

std::int64_t to_half_divided_cpu(const float* values, float divisor, at::Half* half,
                                 std::int64_t n) {
  return to_half_divided_loop(values, divisor, half, n);
}

void from_half_cpu(const at::Half* half, float* values, std::int64_t n) {
  from_half_loop(half, values, n);
}

#endif

bool is_plain(const at::Tensor& values) {
  return values.is_cpu() && values.scalar_type() == at::kFloat;
}

}  // namespace

std::int64_t to_half_divided(const at::Tensor& values, std::int64_t divisor, at::Tensor& half,
                             std::int64_t offset) {
  if (is_plain(values))
    return to_half_divided_cpu(values.data_ptr<float>(), static_cast<float>(divisor),
                               half.data_ptr<at::Half>() + offset, values.numel());
  at::Tensor part = half.narrow(0, offset, values.numel()).view(values.sizes());
  part.copy_(values).div_(divisor);
  return ((part == 0) & (values != 0)).sum().item<std::int64_t>();
}

void from_half(const at::Tensor& half, std::int64_t offset, at::Tensor& values) {
  if (is_plain(values))
    from_half_cpu(half.data_ptr<at::Half>() + offset, values.data_ptr<float>(), values.numel());
  else
    values.copy_(half.narrow(0, offset, values.numel()).view(values.sizes()));
}

}  // namespace psgd
