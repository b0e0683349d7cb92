#include "harness/mpi/half_sum.h"

#include <c10/util/Half.h>

#include <cmath>

#include "compressors/half_vector.h"

namespace psgd {
namespace {

constexpr float kLargestHalf = 65504.0F;

float to_float(std::uint16_t bits) {
  return static_cast<float>(c10::Half(bits, c10::Half::from_bits()));
}

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
#ifdef PSGD_HALF_VECTOR
  for (; i + HalfVector::width <= count; i += HalfVector::width) {
    const auto sum = HalfVector::rounded(HalfVector::load(in + i).widened() +
                                         HalfVector::load(inout + i).widened());
    // Rare, so not worth an instruction more in every turn. Whether a term was infinite, the plain
    // loop finds out.
    if (sum.any_infinite()) [[unlikely]]
      add_halves_reference(in + i, inout + i, HalfVector::width);
    else
      sum.store(inout + i);
  }
#endif
  add_halves_reference(in + i, inout + i, count - i);
}

}  // namespace psgd
