#include "compressors/fp16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compressors/half_conversion.h"
#include "tests/support/thread_collectives.h"

namespace psgd::test {
namespace {

at::Tensor awkward_values(std::int64_t size) {
  at::Tensor values = at::empty({size}, at::kFloat);
  values.uniform_(-1, 1, at::detail::createCPUGenerator(1));
  float* const v = values.data_ptr<float>();
  const float special[] = {0.0F,    -0.0F,   65504.0F, 65519.0F,  65520.0F, 1e30F,
                           6e-8F,   2.9e-8F, -1e-8F,   1e-40F,    2049.0F,  1.00049F,
                           6.1e-5F, 3e-5F,   INFINITY, -INFINITY, NAN};
  for (std::int64_t i = 0; i < size; ++i)
    if (i % 2 == 1) v[i] = special[(i / 2) % 17];
  return values;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor not_numbers = at::isnan(a) & at::isnan(b);
  return (at::eq(a.view(at::kShort), b.view(at::kShort)) | not_numbers).all().item<bool>();
}

TEST(HalfConversion, GivesPyTorchsBits) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const std::int64_t workers : {1, 2, 3, 16})
      for (const std::int64_t size : {0, 1, 15, 16, 17, 34, 100}) {
        const at::Tensor values = awkward_values(size).to(type);
        at::Tensor half = at::zeros({size + 3}, at::kHalf);
        const auto flushed = to_half_divided(values, workers, half, 3);
        const at::Tensor expected = values.to(at::kHalf).div_(workers);
        const at::Tensor part = half.narrow(0, 3, size);
        EXPECT_TRUE(same_bits(part, expected)) << workers << " workers, " << size << " elements";
        EXPECT_EQ(flushed, ((expected == 0) & (values != 0)).sum().item<std::int64_t>());
        at::Tensor back = at::zeros({size}, at::TensorOptions().dtype(type));
        from_half(half, 3, back);
        EXPECT_TRUE(same_bits(back.to(at::kHalf), part));
      }
}

/// The result of a step in which worker w's gradients all are value(w).
float reduced(int workers, const std::function<float(int)>& value,
              std::int64_t* flushed = nullptr) {
  float result = 0;
  run_workers(workers, [&](ThreadCollectives& collectives) {
    Fp16 scheme;
    PhaseClock clock;
    Bucket bucket;
    bucket.gradients = {at::full({20}, value(collectives.worker()), at::kFloat)};
    scheme.reduce(bucket, collectives, clock);
    if (collectives.worker() != 0) return;
    result = bucket.gradients[0][19].item<float>();
    if (flushed != nullptr) *flushed = scheme.counters().at("flushed_to_zero");
  });
  return result;
}

TEST(Fp16, DoesNotOverflowWhereTheMeanIsRepresentable) {
  // Without the division first, two workers would do; with it, three, whose thirds round upwards.
  for (const int workers : {2, 3, 5, 16})
    for (const float value : {60000.0F, 65504.0F, -65504.0F})
      EXPECT_NEAR(reduced(workers, [&](int) { return value; }), value, 64)
          << workers << " workers, " << value;
}

TEST(Fp16, CountsWhatIsFlushedToZero) {
  std::int64_t flushed = -1;
  // 5e-8 is representable (as 6e-8), a quarter of it is not.
  EXPECT_EQ(reduced(
                4, [](int) { return 5e-8F; }, &flushed),
            0);
  EXPECT_EQ(flushed, 20);
  reduced(
      4, [](int) { return 0.0F; }, &flushed);
  EXPECT_EQ(flushed, 0);
  reduced(
      1, [](int) { return 5e-8F; }, &flushed);
  EXPECT_EQ(flushed, 0);
}

}  // namespace
}  // namespace psgd::test
