#include "compressors/numpy_random.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace psgd::test {
namespace {

TEST(NumpyRandom, GivesNumpysNumbersForSeed0) {
  NumpyRandom random(0);
  for (const std::uint32_t expected : {209652396U, 398764591U, 924231285U, 404868288U, 441365315U})
    EXPECT_EQ(random.next(), expected);
}

TEST(NumpyRandom, NeverExceedsTheLargest) {
  NumpyRandom random(7);
  // About 7 % of the 30-bit numbers lie above: without redrawing, some of these would.
  for (int i = 0; i < 1000; ++i) EXPECT_LE(random.next(), 999'999'999U);
}

TEST(NumpyRandom, ContinuesFromItsText) {
  NumpyRandom random(3);
  for (int i = 0; i < 700; ++i) random.next();
  NumpyRandom other(0);
  other.from_text(random.to_text());
  for (int i = 0; i < 700; ++i) EXPECT_EQ(other.next(), random.next());
}

TEST(NumpyRandom, RefusesADamagedText) {
  NumpyRandom random(0);
  EXPECT_THROW(random.from_text("1 2 three"), std::invalid_argument);
}

}  // namespace
}  // namespace psgd::test
