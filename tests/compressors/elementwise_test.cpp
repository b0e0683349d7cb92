#include "compressors/elementwise.h"

#include <gtest/gtest.h>

#include <limits>

namespace psgd::test {
namespace {

/// Values of every size, down to the subnormal ones, where a quotient is rounded.
template <class T>
std::vector<T> values() {
  std::vector<T> values = {
      0, -T{0}, 1, -3, std::numeric_limits<T>::max(), std::numeric_limits<T>::infinity()};
  for (T x = std::numeric_limits<T>::max(); x > 0; x *= T{0.3F})
    values.insert(values.end(), {x, -x});
  return values;
}

template <class T>
void expect_quotients() {
  const std::vector<T> given = values<T>();
  for (const std::int64_t divisor : {1, 2, 3, 4, 5, 7, 8, 16, 48, 1024}) {
    at::Tensor divided = at::tensor(given);
    divide(divided, divisor);
    for (std::size_t i = 0; i < given.size(); ++i)
      EXPECT_EQ(divided.data_ptr<T>()[i], given[i] / static_cast<T>(divisor))
          << given[i] << " / " << divisor;
  }
}

TEST(Elementwise, DivideGivesTheQuotientBitByBit) {
  expect_quotients<float>();
  expect_quotients<double>();
}

TEST(Elementwise, DivideTakesOtherTypes) {
  at::Tensor divided = at::tensor({6, -4, 1}, at::kFloat).to(at::kHalf);
  divide(divided, 2);
  EXPECT_TRUE(at::equal(divided.to(at::kFloat), at::tensor({3.0F, -2.0F, 0.5F})));
}

}  // namespace
}  // namespace psgd::test
