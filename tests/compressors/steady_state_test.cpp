// After its first steps, a scheme allocates nothing.
#include <gtest/gtest.h>

#include "compressors/scheme.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/buckets.h"
#include "tests/support/resnet18_shapes.h"

namespace psgd::test {
namespace {

/// Says that it is one of two workers that hold the same gradients; allocates nothing.
class DoublingCollectives : public Collectives {
 public:
  struct Done : Request {
    void wait() override {}
    static void* operator new(std::size_t) { return &place; }
    static void operator delete(void*) {}
    alignas(std::max_align_t) static inline char place[64];
  };
  int worker() const override { return 0; }
  int size() const override { return 2; }
  void all_reduce(at::Tensor& values, Traffic) override { twice(values); }
  std::unique_ptr<Request> start_all_reduce(at::Tensor& values, Traffic) override {
    twice(values);
    return std::make_unique<Done>();
  }
  void all_gather(const at::Tensor&, at::Tensor&, Traffic) override {}
  void broadcast(at::Tensor&, int, Traffic) override {}

 private:
  static void twice(at::Tensor& values) {
    const std::int64_t n = values.numel();
    if (values.scalar_type() == at::kFloat)
      for (std::int64_t i = 0; i < n; ++i) values.data_ptr<float>()[i] *= 2;
    else
      for (std::int64_t i = 0; i < n; ++i)
        values.data_ptr<at::Half>()[i] = values.data_ptr<at::Half>()[i] * 2.0F;
  }
};

std::int64_t allocations_of_a_step(const SchemeEntry& entry, const OptionValues& given, bool flat) {
  const auto scheme = entry.make(SchemeRegistry::resolve(entry, given));
  Bucket bucket = flat ? flat_bucket(resnet18_shapes(8)) : separate_bucket(resnet18_shapes(8));
  for (auto& gradient : bucket.gradients) gradient.uniform_(-1, 1);
  DoublingCollectives collectives;
  PhaseClock clock;
  for (int step = 0; step < 5; ++step) scheme->reduce(bucket, collectives, clock);
  const std::int64_t before = allocations();
  for (int step = 0; step < 3; ++step) scheme->reduce(bucket, collectives, clock);
  return allocations() - before;
}

TEST(SteadyState, CountsAllocations) {
  const std::int64_t before = allocations();
  const at::Tensor tensor = at::empty({3});
  EXPECT_GT(allocations(), before);
}

TEST(SteadyState, AllocatesNothing) {
  for (const auto& entry : SchemeRegistry::instance().entries()) {
    for (const bool flat : {true, false}) {
      SCOPED_TRACE(name(entry.implementation) + ", " + entry.name +
                   (flat ? ", flat" : ", separate"));
      if (entry.name != "powersgd") {
        EXPECT_EQ(allocations_of_a_step(entry, {}, flat), 0);
        continue;
      }
      for (const std::int64_t rank : {1, 2, 4})
        EXPECT_EQ(allocations_of_a_step(entry, {{"rank", rank}}, flat), 0) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace psgd::test
