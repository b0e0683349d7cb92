#pragma once

#include <cstdint>

namespace psgd {

/// inout[i] += in[i] on IEEE half floats given as their bits. Each sum is formed in float32 and
/// rounded once; a sum of finite terms beyond the largest half (65504) becomes that instead of
/// infinity, so that a sum of terms already divided by the number of workers never overflows where
/// their mean would not.
void add_halves(const std::uint16_t* in, std::uint16_t* inout, std::int64_t count);

/// The same, without vector instructions: what add_halves is tested against.
void add_halves_reference(const std::uint16_t* in, std::uint16_t* inout, std::int64_t count);

}  // namespace psgd
