#include "harness/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "harness/data/augment.h"
#include "harness/data/sampler.h"
#include "tests/data/error_of.h"

namespace psgd {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const Dataset& small_set() {
  static const auto dataset =
      load_dataset({.name = "synthetic", .directory = {}, .train_images = 103, .test_images = 11});
  return dataset;
}

/// One image as the loader should give it, made without the loader.
at::Tensor image(const Images& images, std::int64_t i, const Crop& crop) {
  auto output = at::empty({3, 32, 32});
  write_image<float>(images, i, crop, normalisation_table<float>(small_set()), false,
                     output.data_ptr<float>());
  return output;
}

TEST(TrainLoader, GivesEachWorkerItsShareInOrder) {
  for (const bool augment : {false, true}) {
    for (const int workers : {1, 3, 5}) {
      for (int worker = 0; worker < workers; ++worker) {
        TrainLoader loader(
            small_set(),
            {.batch_size = 4, .worker = worker, .workers = workers, .augment = augment});
        ASSERT_EQ(loader.batches(), (103 + workers - 1) / workers / 4);
        for (const int epoch : {0, 1, 7}) {
          loader.start_epoch(epoch);
          const auto samples = shard(epoch_order(103, epoch), worker, workers);
          for (std::int64_t b = 0; b < loader.batches(); ++b) {
            const auto batch = loader.next();
            for (std::int64_t place = 0; place < 4; ++place) {
              const auto index = b * 4 + place;
              const auto sample = samples[static_cast<std::size_t>(index)];
              const auto crop = augment ? random_crop(1, epoch, worker + index * workers) : Crop{};
              ASSERT_EQ(batch.labels[place].item<std::int64_t>(), small_set().train.label(sample));
              ASSERT_TRUE(batch.images[place].equal(image(small_set().train, sample, crop)));
            }
          }
        }
      }
    }
  }
}

/// All of an epoch, joined.
Batch whole_epoch(TrainLoader& loader, int epoch, std::int64_t first_batch = 0) {
  loader.start_epoch(epoch, first_batch);
  std::vector<at::Tensor> images;
  std::vector<at::Tensor> labels;
  for (std::int64_t b = first_batch; b < loader.batches(); ++b) {
    const auto batch = loader.next();
    images.push_back(batch.images.clone());
    labels.push_back(batch.labels.clone());
  }
  return {at::cat(images), at::cat(labels)};
}

TEST(TrainLoader, TheJoinedBatchOfTwoWorkersIsTheBatchOfOne) {
  TrainLoader one(small_set(), {.batch_size = 8});
  TrainLoader first(small_set(), {.batch_size = 4, .worker = 0, .workers = 2});
  TrainLoader second(small_set(), {.batch_size = 4, .worker = 1, .workers = 2});
  const auto joined = whole_epoch(one, 3);
  // 103 images: 12 batches of one worker, 13 of two, of which the last holds padding.
  const auto part = [](TrainLoader& loader) {
    return whole_epoch(loader, 3).images.narrow(0, 0, 48);
  };
  const auto halves = at::stack({part(first), part(second)}, 1);
  EXPECT_TRUE(halves.reshape_as(joined.images).equal(joined.images));
}

TEST(TrainLoader, TypesAndMemoryFormatsHoldTheSameNumbers) {
  TrainLoader plain(small_set(), {.batch_size = 5});
  TrainLoader last(small_set(), {.batch_size = 5, .channels_last = true});
  TrainLoader wide(small_set(), {.batch_size = 5, .dtype = at::kDouble});
  for (auto* loader : {&plain, &last, &wide}) loader->start_epoch(0);
  const auto batch = plain.next();
  const auto batch_last = last.next();
  const auto batch_wide = wide.next();
  EXPECT_TRUE(batch_last.images.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(batch_last.images.equal(batch.images));
  EXPECT_EQ(batch_wide.images.scalar_type(), at::kDouble);
  EXPECT_TRUE(batch_wide.images.allclose(batch.images.to(at::kDouble), 1e-5, 1e-6));
}

TEST(TrainLoader, BeginsInTheMiddleOfAnEpoch) {
  TrainLoader loader(small_set(), {.batch_size = 10});
  const auto whole = whole_epoch(loader, 2);
  TrainLoader resumed(small_set(), {.batch_size = 10});
  EXPECT_TRUE(whole_epoch(resumed, 2, 7).images.equal(whole.images.narrow(0, 70, 30)));
  resumed.start_epoch(2, 10);  // at its end
  EXPECT_THROW(resumed.next(), std::logic_error);
  EXPECT_THROW(resumed.start_epoch(2, 11), std::invalid_argument);
}

TEST(TrainLoader, AnEpochLeftEarlyDoesNotShowInTheNext) {
  TrainLoader loader(small_set(), {.batch_size = 10});
  const auto expected = whole_epoch(loader, 1);
  for (int taken = 0; taken < 5; ++taken) {
    loader.start_epoch(0);
    for (int i = 0; i < taken; ++i) loader.next();
    EXPECT_TRUE(whole_epoch(loader, 1).images.equal(expected.images)) << taken;
  }
}

TEST(TrainLoader, ABatchLivesUntilTheSecondFollowingCallAndMemoryIsReused) {
  TrainLoader loader(small_set(), {.batch_size = 1});
  std::set<void*> places;
  for (int epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    at::Tensor before;
    at::Tensor copy;
    for (std::int64_t b = 0; b < loader.batches(); ++b) {
      const auto batch = loader.next();
      places.insert(batch.images.data_ptr());
      if (before.defined()) {
        std::this_thread::sleep_for(50us);  // time to do damage
        ASSERT_TRUE(before.equal(copy));
      }
      before = batch.images;
      copy = before.clone();
    }
  }
  EXPECT_LE(places.size(), 4u);
}

TEST(TrainLoader, FewerBatchesIfAsked) {
  TrainLoader loader(small_set(), {.batch_size = 10, .batches_per_epoch = 3});
  EXPECT_EQ(loader.batches(), 3);
  TrainLoader all(small_set(), {.batch_size = 10});
  EXPECT_TRUE(whole_epoch(loader, 4).images.equal(whole_epoch(all, 4).images.narrow(0, 0, 30)));
  EXPECT_THROW(loader.next(), std::logic_error);
}

TEST(TrainLoader, RunsTwoBatchesAheadAndNoFurther) {
  std::atomic<int> begun = 0;
  TrainLoader loader(small_set(),
                     {.batch_size = 1, .before_batch = [&](int, std::int64_t) { ++begun; }});
  const auto settles_at = [&](int expected) {
    for (int i = 0; i < 2000 && begun < expected; ++i) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    return begun.load();
  };
  EXPECT_EQ(settles_at(0), 0);
  loader.start_epoch(0);
  EXPECT_EQ(settles_at(2), 2);
  for (int taken = 1; taken < 6; ++taken) {
    loader.next();
    EXPECT_EQ(settles_at(taken + 2), taken + 2);
  }
}

TEST(TrainLoader, WhatTheThreadThrowsReachesTheCaller) {
  const auto fail_at_two = [](int, std::int64_t batch) {
    if (batch == 2) throw std::runtime_error("the disk is on fire");
  };
  TrainLoader loader(small_set(), {.batch_size = 1, .before_batch = fail_at_two});
  loader.start_epoch(0);
  const auto take_three = [&] {
    for (int i = 0; i < 3; ++i) loader.next();
  };
  EXPECT_EQ(error_of(take_three), "the disk is on fire");
  EXPECT_EQ(error_of([&] { loader.next(); }), "the disk is on fire");
  loader.start_epoch(1);
  EXPECT_EQ(error_of([&] { loader.next(); }), "the disk is on fire");
}

TEST(TrainLoader, MayEndAtAnyTime) {
  for (int i = 0; i < 200; ++i) {
    TrainLoader loader(small_set(), {.batch_size = 20});
    if (i % 4 == 0) continue;
    loader.start_epoch(i);
    for (int taken = 0; taken < i % 4 - 1; ++taken) loader.next();
    if (i % 8 > 4) std::this_thread::sleep_for(std::chrono::microseconds(i));
  }
}

TEST(TrainLoader, BeforeTheFirstEpochThereIsNoBatch) {
  TrainLoader loader(small_set(), {.batch_size = 20});
  EXPECT_THAT(error_of([&] { loader.next(); }), HasSubstr("start_epoch"));
}

TEST(TrainLoader, OneImage) {
  const auto one =
      load_dataset({.name = "synthetic", .directory = {}, .train_images = 1, .test_images = 1});
  TrainLoader loader(one, {.batch_size = 1, .worker = 2, .workers = 3});
  EXPECT_EQ(loader.batches(), 1);
  loader.start_epoch(0);
  EXPECT_EQ(loader.next().labels.item<std::int64_t>(), one.train.label(0));
}

TEST(TrainLoader, ContradictionsAreRefused) {
  const auto make = [](const LoaderOptions& options) {
    return [options] { TrainLoader loader(small_set(), options); };
  };
  EXPECT_THAT(error_of(make({.batch_size = 27, .workers = 4})), HasSubstr("batch_size is 27"));
  EXPECT_EQ(error_of(make({.batch_size = 26, .workers = 4})), "no error");
  EXPECT_THAT(error_of(make({.batch_size = 0})), HasSubstr("batch_size is 0"));
  EXPECT_THAT(error_of(make({.batch_size = 10, .batches_per_epoch = 11})),
              HasSubstr("batches_per_epoch is 11"));
  EXPECT_THAT(error_of(make({.batch_size = 10, .batches_per_epoch = -1})),
              HasSubstr("batches_per_epoch is -1"));
  EXPECT_THAT(error_of(make({.batch_size = 1, .worker = 4, .workers = 4})),
              HasSubstr("worker 4 of 4"));
  EXPECT_THAT(error_of(make({.batch_size = 1, .dtype = at::kHalf})),
              HasSubstr("float32 or float64"));
}

TEST(TestLoader, WorkersTogetherSeeEachImageOnce) {
  for (const int workers : {1, 2, 3, 12}) {
    std::vector<int> seen(11);
    std::int64_t most = 0;
    for (int worker = 0; worker < workers; ++worker) {
      TestLoader loader(small_set(), {.batch_size = 2, .worker = worker, .workers = workers});
      std::int64_t images = 0;
      for (std::int64_t b = 0; b < loader.batches(); ++b) {
        const auto batch = loader.batch(b);
        ASSERT_EQ(batch.images.size(0), batch.labels.size(0));
        for (std::int64_t place = 0; place < batch.labels.size(0); ++place, ++images) {
          const auto sample = worker + images * workers;
          ++seen[static_cast<std::size_t>(sample)];
          EXPECT_EQ(batch.labels[place].item<std::int64_t>(), small_set().test.label(sample));
          EXPECT_TRUE(batch.images[place].equal(image(small_set().test, sample, Crop{})));
        }
      }
      EXPECT_EQ(images, loader.images());
      most = std::max(most, loader.batches());
      EXPECT_EQ(loader.most_batches(), ((11 + workers - 1) / workers + 1) / 2);
    }
    EXPECT_THAT(seen, ::testing::Each(1));
    EXPECT_EQ(most, TestLoader(small_set(), {.batch_size = 2, .workers = workers}).most_batches());
  }
}

TEST(TestLoader, WrongBatchesAreRefused) {
  TestLoader loader(small_set(), {.batch_size = 20});
  EXPECT_THROW(loader.batch(1), std::out_of_range);
  EXPECT_THROW(loader.batch(-1), std::out_of_range);
  EXPECT_THROW(TestLoader(small_set(), {.batch_size = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace psgd
