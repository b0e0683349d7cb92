#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace psgd {

/// The whole numbers that NumPy's `RandomState(seed).randint(1_000_000_000)` gives, one after the
/// other.
///
/// Both originals seed the generator of each random Q with the next of them. NumPy seeds a Mersenne
/// Twister (MT19937) and takes an output's low 30 bits, drawing again while they exceed
/// 999,999,999.
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed) : engine_(seed) {}

  /// The next number, 0 .. 999,999,999.
  std::uint32_t next();

  /// The state as text; from_text() continues with the same numbers. Throws std::invalid_argument.
  std::string to_text() const;
  void from_text(const std::string& text);

 private:
  std::mt19937 engine_;
};

}  // namespace psgd
