#include "harness/mpi/half_sum.h"

#include <c10/util/Half.h>

#include <cmath>

#if defined(__F16C__) && defined(__AVX__)
#include <immintrin.h>
#endif

namespace psgd {
namespace {

constexpr float kLargestHalf = 65504.0F;

float to_float(std::uint16_t bits) { return static_cast<float>(c10::Half(bits, c10::Half::from_bits())); }

}  // namespace

void add_halves_reference(const std::uint16_t* in, std::uint16_t* inout, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = to_float(in[i]) + to_float(inout[i]);
    // Two finite halves sum to at most 131008, so an infinite float means an infinite term.
    if (std::isfinite(sum)) sum = std::fmin(std::fmax(sum, -kLargestHalf), kLargestHalf);
    inout[i] = c10::Half(sum).x;
  }
}

void add_halves(const std::uint16_t* in, std::uint16_t* inout, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__F16C__) && defined(__AVX__)
  const __m256 limit = _mm256_set1_ps(kLargestHalf);
  const __m256 infinity = _mm256_set1_ps(INFINITY);
  const __m256 sign = _mm256_set1_ps(-0.0F);
  for (; i + 8 <= count; i += 8) {
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
    const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(inout + i)));
    const __m256 sum = _mm256_add_ps(a, b);
    const __m256 size = _mm256_andnot_ps(sign, sum);
    // Clamp where limit < |sum| < infinity; infinite and NaN sums stay what they are.
    const __m256 clamp = _mm256_and_ps(_mm256_cmp_ps(size, limit, _CMP_GT_OQ),
                                       _mm256_cmp_ps(size, infinity, _CMP_LT_OQ));
    const __m256 clamped = _mm256_or_ps(limit, _mm256_and_ps(sign, sum));
    const __m256 result = _mm256_blendv_ps(sum, clamped, clamp);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(inout + i), _mm256_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  add_halves_reference(in + i, inout + i, count - i);
}

}  // namespace psgd
