#include "harness/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace psgd {
namespace {

using ::testing::ElementsAre;
using Samples = std::vector<std::int64_t>;

/// A number that any exchange of two samples changes.
std::int64_t fingerprint(const Samples& order) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) sum += static_cast<std::int64_t>(i) * order[i];
  return sum % 1000003;
}

// Expected values from PyTorch 1.13 in Python:
//   g = torch.Generator(); g.manual_seed(epoch); p = torch.randperm(count, generator=g).tolist()
//   p[:10], sum(i * v for i, v in enumerate(p)) % 1000003
TEST(EpochOrder, IsPythonsRandperm) {
  EXPECT_THAT(epoch_order(10, 0), ElementsAre(4, 1, 7, 5, 3, 9, 0, 8, 6, 2));
  EXPECT_THAT(epoch_order(10, 1), ElementsAre(5, 6, 1, 2, 0, 8, 9, 3, 7, 4));
  const auto first = epoch_order(50000, 0);
  EXPECT_THAT(Samples(first.begin(), first.begin() + 5),
              ElementsAre(36044, 49165, 37807, 11341, 6091));
  EXPECT_EQ(fingerprint(first), 698356);
  const auto last = epoch_order(50000, 299);
  EXPECT_THAT(Samples(last.begin(), last.begin() + 5),
              ElementsAre(28906, 9601, 26291, 30738, 26651));
  EXPECT_EQ(fingerprint(last), 54044);
}

TEST(EpochOrder, DiffersBetweenEpochsAndIsRepeatable) {
  std::set<Samples> orders;
  for (int epoch = 0; epoch < 50; ++epoch) orders.insert(epoch_order(100, epoch));
  EXPECT_EQ(orders.size(), 50u);
  EXPECT_EQ(epoch_order(100, 7), epoch_order(100, 7));
}

TEST(EpochOrder, NoneAndOne) {
  EXPECT_TRUE(epoch_order(0, 3).empty());
  EXPECT_THAT(epoch_order(1, 3), ElementsAre(0));
}

TEST(Shard, PadsByTheOrdersOwnStart) {
  const Samples order = {4, 1, 7, 5, 3, 9, 0};
  EXPECT_THAT(shard(order, 0, 3), ElementsAre(4, 5, 0));
  EXPECT_THAT(shard(order, 1, 3), ElementsAre(1, 3, 4));
  EXPECT_THAT(shard(order, 2, 3), ElementsAre(7, 9, 1));
}

TEST(Shard, FewerSamplesThanWorkers) {
  for (int worker = 0; worker < 5; ++worker)
    EXPECT_THAT(shard({0, 1}, worker, 5), ElementsAre(worker % 2));
  EXPECT_TRUE(shard({}, 4, 5).empty());
}

TEST(Shard, SharesAreCompleteAndDisjointButForThePadding) {
  for (const std::int64_t count : {1, 2, 15, 16, 17, 50, 1000}) {
    for (const int workers : {1, 2, 3, 5, 16}) {
      const auto order = epoch_order(count, 2);
      std::vector<int> seen(static_cast<std::size_t>(count));
      for (int worker = 0; worker < workers; ++worker) {
        const auto mine = shard(order, worker, workers);
        EXPECT_EQ(static_cast<std::int64_t>(mine.size()), shard_size(count, workers));
        for (const auto sample : mine) ++seen[static_cast<std::size_t>(sample)];
      }
      const auto dealt = std::accumulate(seen.begin(), seen.end(), std::int64_t{0});
      EXPECT_EQ(dealt % workers, 0);
      EXPECT_LT(dealt - count, workers);
      EXPECT_GE(*std::min_element(seen.begin(), seen.end()), 1);
      if (count >= workers) {
        EXPECT_LE(*std::max_element(seen.begin(), seen.end()), 2);
      }
    }
  }
}

TEST(Shard, ThePapersNumbers) { EXPECT_EQ(shard_size(50000, 16), 3125); }

TEST(TestShard, EachSampleExactlyOnce) {
  for (const std::int64_t count : {0, 1, 15, 16, 17, 10000}) {
    for (const int workers : {1, 3, 16}) {
      Samples all;
      for (int worker = 0; worker < workers; ++worker) {
        const auto mine = test_shard(count, worker, workers);
        all.insert(all.end(), mine.begin(), mine.end());
      }
      std::sort(all.begin(), all.end());
      Samples expected(static_cast<std::size_t>(count));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected);
    }
  }
}

TEST(Shard, RefusesWorkersThatDoNotExist) {
  EXPECT_THROW(shard({1}, 2, 2), std::invalid_argument);
  EXPECT_THROW(shard({1}, -1, 2), std::invalid_argument);
  EXPECT_THROW(test_shard(1, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace psgd
