#pragma once

#include "compressors/simd.h"

// The conversions between float16 and float32 that the compiler's target has, at the width of a
// FloatVector.
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define PSGD_HALF_VECTOR 1
#elif !defined(__AVX512F__) && defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define PSGD_HALF_VECTOR 1
#endif

#ifdef PSGD_HALF_VECTOR

namespace psgd {

/// One register of float16, as many as a FloatVector has float32. Rounds to nearest even, as IEEE
/// 754 and PyTorch do. A bit mask has a bit for each element, the first lowest.
struct HalfVector {
  static constexpr int width = FloatVector::width;

#if defined(__AVX512F__)
  // The masked forms with a full mask are the plain conversions; of those GCC 12 warns that they
  // use an uninitialised value.
  static constexpr __mmask16 kAll = 0xFFFF;
  __m256i v;

  static HalfVector load(const std::uint16_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }
  void store(std::uint16_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  /// Past the cache; p is aligned to a vector.
  void stream(std::uint16_t* p) const { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v); }
  static HalfVector rounded(FloatVector x) {
    return {_mm512_maskz_cvtps_ph(kAll, x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  FloatVector widened() const { return {_mm512_maskz_cvtph_ps(kAll, v)}; }

  /// Elements that are 0 or -0.
  unsigned zeros() const { return _mm256_testn_epi16_mask(v, _mm256_set1_epi16(0x7FFF)); }
  bool any_infinite() const {
    const __m256i magnitude = _mm256_and_si256(v, _mm256_set1_epi16(0x7FFF));
    return _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7C00)) != 0;
  }
  /// Elements that are neither 0 nor -0; NaN is one of them.
  static unsigned not_zero(FloatVector x) {
    return _mm512_cmp_ps_mask(x.v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  }
#else
  __m128i v;

  static HalfVector load(const std::uint16_t* p) {
    return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))};
  }
  void store(std::uint16_t* p) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
  /// Past the cache; p is aligned to a vector.
  void stream(std::uint16_t* p) const { _mm_stream_si128(reinterpret_cast<__m128i*>(p), v); }
  static HalfVector rounded(FloatVector x) {
    return {_mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT)};
  }
  FloatVector widened() const { return {_mm256_cvtph_ps(v)}; }

  unsigned zeros() const { return lanes(_mm_cmpeq_epi16(magnitude(), _mm_setzero_si128())); }
  bool any_infinite() const {
    return lanes(_mm_cmpeq_epi16(magnitude(), _mm_set1_epi16(0x7C00))) != 0;
  }
  static unsigned not_zero(FloatVector x) {
    return static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_cmp_ps(x.v, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
  }

 private:
  __m128i magnitude() const { return _mm_and_si128(v, _mm_set1_epi16(0x7FFF)); }
  static unsigned lanes(__m128i yes_or_no) {
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_packs_epi16(yes_or_no, _mm_setzero_si128())));
  }
#endif
};

}  // namespace psgd

#endif
