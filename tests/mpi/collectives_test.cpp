// Collectives over MPI against sums formed here, at awkward sizes.
#include <gtest/gtest.h>

#include "harness/mpi/half_sum.h"
#include "harness/train/weights_check.h"
#include "tests/mpi/mpi_main.h"
#include "tests/support/allocation_counter.h"

namespace psgd::test {
namespace {

std::vector<std::int64_t> sizes() {
  const std::int64_t n = session().workers();
  return {0, 1, 2, n - 1, n, n + 1, 1000, 4099, 65537, 1000003};
}

at::Tensor local_sum(std::int64_t elements, at::ScalarType type) {
  at::Tensor sum = at::zeros({elements}, at::kDouble);
  for (int worker = 0; worker < session().workers(); ++worker)
    sum += values_of(worker, elements, type).to(at::kDouble);
  return sum;
}

double tolerance(at::ScalarType type) {
  switch (type) {
    case at::kHalf: return 0x1p-10 * session().workers();
    case at::kFloat: return 1e-6 * session().workers();
    default: return 1e-15 * session().workers();
  }
}

/// All workers' results in one tensor [workers, elements], gathered by worker 0's broadcasts.
void expect_same_on_all(const at::Tensor& mine) {
  at::Tensor first = mine.clone();
  collectives().broadcast(first, 0, Traffic::check);
  EXPECT_TRUE(at::equal(first, mine))
      << "worker " << session().worker() << " holds other bits than worker 0";
}

TEST(Collectives, AllReduceSums) {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf}) {
    for (const auto elements : sizes()) {
      SCOPED_TRACE(std::string(c10::toString(type)) + " x " + std::to_string(elements));
      at::Tensor values = values_of(session().worker(), elements, type);
      collectives().all_reduce(values, Traffic::check);
      const at::Tensor expected = local_sum(elements, type);
      if (elements > 0) {
        EXPECT_LE((values.to(at::kDouble) - expected).abs().max().item<double>(), tolerance(type));
      }
      expect_same_on_all(values);
    }
  }
}

TEST(Collectives, StartedAllReducesFinishInAnyOrder) {
  at::Tensor first = values_of(session().worker(), 4099, at::kFloat);
  at::Tensor second = values_of(session().worker(), 3, at::kFloat) + 1;
  const auto first_request = collectives().start_all_reduce(first, Traffic::check);
  const auto second_request = collectives().start_all_reduce(second, Traffic::check);
  at::Tensor between = at::ones({5}, at::kLong);
  collectives().all_reduce(between, Traffic::check);
  second_request->wait();
  first_request->wait();
  EXPECT_LE((first.to(at::kDouble) - local_sum(4099, at::kFloat)).abs().max().item<double>(),
            tolerance(at::kFloat));
  EXPECT_LE((second.to(at::kDouble) - local_sum(3, at::kFloat) - session().workers())
                .abs()
                .max()
                .item<double>(),
            1e-5);
  EXPECT_TRUE(between.eq(session().workers()).all().item<bool>());
}

TEST(Collectives, AllGatherKeepsTheWorkersOrder) {
  for (const auto type : {at::kFloat, at::kHalf, at::kLong, at::kByte}) {
    for (const std::int64_t elements : {0, 1, 7, 1001}) {
      const auto of = [&](int worker) {
        return at::arange(elements, at::kLong).add(worker * 3).remainder(101).to(type);
      };
      at::Tensor received = at::zeros({session().workers() * elements}, type);
      collectives().all_gather(of(session().worker()), received, Traffic::check);
      for (int worker = 0; worker < session().workers(); ++worker)
        EXPECT_TRUE(at::equal(received.narrow(0, worker * elements, elements), of(worker)));
    }
  }
}

TEST(Collectives, BroadcastFromEveryRoot) {
  for (int root = 0; root < session().workers(); ++root) {
    at::Tensor values = values_of(session().worker(), 1001, at::kDouble);
    collectives().broadcast(values, root, Traffic::check);
    EXPECT_TRUE(at::equal(values, values_of(root, 1001, at::kDouble)));
  }
}

TEST(Collectives, TextsOfDifferentLengthsArrive) {
  const auto of = [](int worker) {
    return std::string(static_cast<std::size_t>(worker) * 1000, 'a' + worker % 26);
  };
  const auto all = collectives().all_gather_text(of(session().worker()));
  for (int worker = 0; worker < session().workers(); ++worker) EXPECT_EQ(all[worker], of(worker));
}

TEST(Collectives, CountEachPurposeExactly) {
  MpiCollectives fresh(session().communicator(), collectives().wait());
  at::Tensor floats = at::zeros({1001});
  at::Tensor halves = at::zeros({333}, at::kHalf);
  fresh.all_reduce(floats, Traffic::gradient);
  fresh.start_all_reduce(halves, Traffic::gradient)->wait();
  fresh.broadcast(floats, 0, Traffic::buffer);
  EXPECT_EQ(fresh.traffic(Traffic::gradient).bytes, 4 * 1001 + 2 * 333);
  EXPECT_EQ(fresh.traffic(Traffic::gradient).calls, 2);
  EXPECT_EQ(fresh.gradient_bits(), 8 * (4 * 1001 + 2 * 333));
  EXPECT_EQ(fresh.traffic(Traffic::buffer).bytes, 4 * 1001);
  EXPECT_EQ(fresh.traffic(Traffic::metric).bytes, 0);
}

TEST(Collectives, SelfTestPassesAndIsNotCounted) {
  const auto before = collectives().traffic(Traffic::check).bytes;
  EXPECT_NO_THROW(collectives().self_test());
  EXPECT_EQ(collectives().traffic(Traffic::check).bytes, before);
}

TEST(Collectives, EveryWayOfWaitingGivesTheSame) {
  for (const Wait wait : {Wait::spin, Wait::yield, Wait::sleep}) {
    MpiCollectives waiting(session().communicator(), wait);
    at::Tensor values = at::full({100}, session().worker() + 1, at::kLong);
    waiting.all_reduce(values, Traffic::check);
    const std::int64_t n = session().workers();
    EXPECT_TRUE(values.eq(n * (n + 1) / 2).all().item<bool>()) << name(wait);
  }
}

TEST(HalfSums, FiniteTermsDoNotBecomeInfinite) {
  // 65504 / n, rounded up, n times: beyond the largest half by rounding alone.
  const float share = 65504.0F / static_cast<float>(session().workers());
  for (const float sign : {1.0F, -1.0F}) {
    at::Tensor values = at::full({17}, sign * share).to(at::kHalf);
    collectives().all_reduce(values, Traffic::check);
    EXPECT_TRUE(values.to(at::kFloat).isfinite().all().item<bool>());
    EXPECT_GE((sign * values.to(at::kFloat)).min().item<float>(), 65000.0F);
  }
}

TEST(HalfSums, InfiniteAndNanTermsStay) {
  at::Tensor values = at::tensor({INFINITY, NAN, 1.0F}).to(at::kHalf);
  collectives().all_reduce(values, Traffic::check);
  EXPECT_EQ(values[0].item<float>(), INFINITY);
  EXPECT_TRUE(std::isnan(values[1].item<float>()));
  EXPECT_EQ(values[2].item<float>(), static_cast<float>(session().workers()));
}

TEST(HalfSums, VectorLoopsMatchThePlainOne) {
  for (const std::int64_t elements : {0, 1, 7, 8, 9, 15, 16, 17, 33, 1000, 65536}) {
    // Every bit pattern there is, and each with another.
    const at::Tensor a = at::arange(elements, at::kLong).mul(40503).to(at::kShort);
    const at::Tensor b = at::arange(elements, at::kLong).mul(30011).add(12345).to(at::kShort);
    at::Tensor fast = b.clone();
    at::Tensor plain = b.clone();
    const auto bits = [](const at::Tensor& t) {
      return reinterpret_cast<std::uint16_t*>(t.data_ptr<std::int16_t>());
    };
    add_halves(bits(a), bits(fast), elements);
    add_halves_reference(bits(a), bits(plain), elements);
    const at::Tensor fast_values = fast.view(at::kHalf).to(at::kFloat);
    const at::Tensor plain_values = plain.view(at::kHalf).to(at::kFloat);
    EXPECT_TRUE(at::allclose(fast_values, plain_values, 0, 0, /*equal_nan=*/true));
  }
}

TEST(Collectives, AllocateNothingAfterTheFirst) {
  for (const auto type : {at::kFloat, at::kHalf}) {
    at::Tensor values = values_of(session().worker(), 4099, type);
    const auto reduce_twice = [&] {
      collectives().all_reduce(values, Traffic::check);
      collectives().start_all_reduce(values, Traffic::check)->wait();
    };
    reduce_twice();
    const std::int64_t before = allocations();
    reduce_twice();
    EXPECT_EQ(allocations() - before, 0) << c10::toString(type);
  }
}

TEST(WeightsCheck, FindsOneFlippedBitAndNamesTheWorker) {
  std::vector<torch::Tensor> weights = {values_of(0, 1001, at::kFloat),
                                        values_of(1, 3, at::kFloat)};
  EXPECT_NO_THROW(check_same_weights(collectives(), weights, "now"));
  if (session().workers() < 3) return;  // with two, there is no majority to differ from
  if (session().worker() == 2) weights[0].view(at::kInt)[1000].bitwise_xor_(1);
  try {
    check_same_weights(collectives(), weights, "after epoch 3, batch 50");
    ADD_FAILURE() << "a flipped bit was not noticed";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("after epoch 3, batch 50: worker 2 "),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace psgd::test
