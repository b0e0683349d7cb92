#pragma once

#include <cstdint>

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

namespace psgd {

/// One vector register of float32, in what the compiler's target has: AVX-512, AVX2 with FMA, or
/// plain loops. fma() rounds once where the target has FMA, and a tail goes through the same
/// operations as a full vector: an element's value does not depend on its place, so it is the same
/// on every worker.
struct FloatVector {
#if defined(__AVX512F__)
  static constexpr int width = 16;
  static constexpr int registers = 32;
  __m512 v;

  static __mmask16 mask(std::int64_t count) { return static_cast<__mmask16>((1U << count) - 1U); }
  static FloatVector zero() { return {_mm512_setzero_ps()}; }
  static FloatVector all(float x) { return {_mm512_set1_ps(x)}; }
  static FloatVector load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static FloatVector load(const float* p, std::int64_t count) {
    return {_mm512_maskz_loadu_ps(mask(count), p)};
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store(float* p, std::int64_t count) const { _mm512_mask_storeu_ps(p, mask(count), v); }
  /// Past the cache; p is aligned to a vector.
  void stream(float* p) const { _mm512_stream_ps(p, v); }
  float sum() const {
    // Not _mm512_reduce_add_ps: GCC 12 warns of an uninitialised value inside it.
    alignas(64) float lanes[width];
    _mm512_store_ps(lanes, v);
    for (int half = width / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
  }
  friend FloatVector operator+(FloatVector a, FloatVector b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend FloatVector operator-(FloatVector a, FloatVector b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend FloatVector operator*(FloatVector a, FloatVector b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend FloatVector operator/(FloatVector a, FloatVector b) { return {_mm512_div_ps(a.v, b.v)}; }
  /// a b + c
  friend FloatVector fma(FloatVector a, FloatVector b, FloatVector c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
  }
#elif defined(__AVX2__) && defined(__FMA__)
  static constexpr int width = 8;
  static constexpr int registers = 16;
  __m256 v;

  static __m256i mask(std::int64_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }
  static FloatVector zero() { return {_mm256_setzero_ps()}; }
  static FloatVector all(float x) { return {_mm256_set1_ps(x)}; }
  static FloatVector load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static FloatVector load(const float* p, std::int64_t count) {
    return {_mm256_maskload_ps(p, mask(count))};
  }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void store(float* p, std::int64_t count) const { _mm256_maskstore_ps(p, mask(count), v); }
  /// Past the cache; p is aligned to a vector.
  void stream(float* p) const { _mm256_stream_ps(p, v); }
  float sum() const {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  friend FloatVector operator+(FloatVector a, FloatVector b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend FloatVector operator-(FloatVector a, FloatVector b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend FloatVector operator*(FloatVector a, FloatVector b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend FloatVector operator/(FloatVector a, FloatVector b) { return {_mm256_div_ps(a.v, b.v)}; }
  /// a b + c
  friend FloatVector fma(FloatVector a, FloatVector b, FloatVector c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
  }
#else
#define PSGD_PLAIN_VECTOR 1
  static constexpr int width = 8;
  static constexpr int registers = 16;
  float v[width];

  template <class F>
  static FloatVector each(F f) {
    FloatVector r;
    for (int i = 0; i < width; ++i) r.v[i] = f(i);
    return r;
  }
  static FloatVector zero() { return all(0); }
  static FloatVector all(float x) {
    return each([&](int) { return x; });
  }
  static FloatVector load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static FloatVector load(const float* p, std::int64_t count) {
    return each([&](int i) { return i < count ? p[i] : 0.0F; });
  }
  void store(float* p) const { store(p, width); }
  void store(float* p, std::int64_t count) const {
    for (int i = 0; i < count; ++i) p[i] = v[i];
  }
  void stream(float* p) const { store(p); }
  float sum() const { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }
  friend FloatVector operator+(FloatVector a, FloatVector b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  friend FloatVector operator-(FloatVector a, FloatVector b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  friend FloatVector operator*(FloatVector a, FloatVector b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  friend FloatVector operator/(FloatVector a, FloatVector b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  /// a b + c; two roundings where the target has no FMA (std::fma would be a slow call).
  friend FloatVector fma(FloatVector a, FloatVector b, FloatVector c) { return a * b + c; }
#endif

  /// Lets the compiler load this once. GCC would make the load an operand of every instruction that
  /// uses it, and loads across cache lines, which gradients in a bucket need, are what these loops
  /// have least of.
  void keep_in_register() {
#ifndef PSGD_PLAIN_VECTOR
    asm("" : "+v"(v));
#endif
  }
};

/// After the last stream(): other cores see what was streamed before what is stored from here on.
inline void end_streaming() {
#ifndef PSGD_PLAIN_VECTOR
  _mm_sfence();
#endif
}

/// Elements from `p` to the first address that is a multiple of `count` elements.
template <class T>
std::int64_t elements_to_alignment(const T* p, std::int64_t count) {
  const auto past =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T)) % count;
  return past == 0 ? 0 : count - past;
}

}  // namespace psgd
