#include "compressors/half_conversion.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define PSGD_HALF_AVX512 1
#include <immintrin.h>
#endif

namespace psgd {
namespace {

std::int64_t to_half_divided_loop(const float* values, float divisor, at::Half* half, std::int64_t begin,
                                  std::int64_t end) {
  std::int64_t flushed = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    half[i] = at::Half(static_cast<float>(at::Half(values[i])) / divisor);
    flushed += (half[i].x & 0x7FFF) == 0 && values[i] != 0;
  }
  return flushed;
}

#ifdef PSGD_HALF_AVX512

// The masked forms with a full mask are the plain conversions; of those GCC 12 warns that they use an
// uninitialised value.
constexpr __mmask16 kAll = 0xFFFF;

__m256i to_half(__m512 x) {
  return _mm512_maskz_cvtps_ph(kAll, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

__m512 to_float(__m256i x) { return _mm512_maskz_cvtph_ps(kAll, x); }

std::int64_t to_half_divided_cpu(const float* values, float divisor, at::Half* half, std::int64_t n) {
  const __m512 by = _mm512_set1_ps(divisor);
  const __m256i magnitude = _mm256_set1_epi16(0x7FFF);
  std::int64_t flushed = 0;
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 x = _mm512_loadu_ps(values + i);
    const __m256i result = to_half(_mm512_div_ps(to_float(to_half(x)), by));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(half + i), result);
    const __mmask16 zero = _mm256_testn_epi16_mask(result, magnitude);
    const __mmask16 given = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    flushed += __builtin_popcount(static_cast<unsigned>(zero & given));
  }
  return flushed + to_half_divided_loop(values, divisor, half, i, n);
}

void from_half_cpu(const at::Half* half, float* values, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(values + i, to_float(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(half + i))));
  for (; i < n; ++i) values[i] = half[i];
}

#else

std::int64_t to_half_divided_cpu(const float* values, float divisor, at::Half* half, std::int64_t n) {
  return to_half_divided_loop(values, divisor, half, 0, n);
}

void from_half_cpu(const at::Half* half, float* values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = half[i];
}

#endif

bool is_plain(const at::Tensor& values) { return values.is_cpu() && values.scalar_type() == at::kFloat; }

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
