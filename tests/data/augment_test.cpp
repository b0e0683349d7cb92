#include "harness/data/augment.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/data/counter_random.h"

namespace psgd {
namespace {

Dataset four_images() {
  auto dataset =
      load_dataset({.name = "synthetic", .directory = {}, .train_images = 4, .test_images = 2});
  dataset.mean = {0.4914, 0.4822, 0.4465};
  dataset.std_deviation = {0.2023, 0.1994, 0.2010};
  return dataset;
}

template <typename T>
constexpr auto kType = std::is_same_v<T, float> ? at::kFloat : at::kDouble;

at::Tensor per_channel(const std::array<double, kChannels>& values, at::ScalarType type) {
  return at::tensor(at::ArrayRef<double>(values.data(), values.size())).to(type).reshape({3, 1, 1});
}

/// The slow way, operation by operation as torchvision does it.
template <typename T>
at::Tensor slow(const Dataset& dataset, std::int64_t i, const Crop& crop) {
  std::vector<at::Tensor> planes;
  for (int channel = 0; channel < kChannels; ++channel)
    planes.push_back(at::from_blob(const_cast<std::uint8_t*>(dataset.train.plane(i, channel)),
                                   {32, 32}, at::kByte)
                         .clone());
  auto image = at::constant_pad_nd(at::stack(planes), {4, 4, 4, 4}, 0);
  image = image.narrow(1, crop.top, 32).narrow(2, crop.left, 32);
  if (crop.flip) image = image.flip(2);
  image = image.to(kType<T>).div(255);
  return image.sub(per_channel(dataset.mean, kType<T>))
      .div(per_channel(dataset.std_deviation, kType<T>));
}

template <typename T>
void compare_all_crops(const Dataset& dataset) {
  const auto table = normalisation_table<T>(dataset);
  for (const bool channels_last : {false, true}) {
    const auto format =
        channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    at::Tensor found = at::empty({1, 3, 32, 32}, at::TensorOptions().dtype(kType<T>), format);
    for (int top = 0; top <= 8; ++top)
      for (int left = 0; left <= 8; ++left)
        for (const bool flip : {false, true}) {
          const Crop crop{top, left, flip};
          found.fill_(-99);
          write_image<T>(dataset.train, 1, crop, table, channels_last, found.data_ptr<T>());
          const at::Tensor expected = slow<T>(dataset, 1, crop);
          ASSERT_TRUE(found[0].equal(expected)) << top << " " << left << " " << flip;
        }
  }
}

TEST(WriteImage, EqualsTheSlowWayBitForBit) {
  const auto dataset = four_images();
  compare_all_crops<float>(dataset);
  compare_all_crops<double>(dataset);
}

TEST(WriteImage, GreyImagesFillThreeChannels) {
  auto records = std::make_shared<std::vector<std::uint8_t>>(2 * (1 + kPlanePixels));
  for (std::size_t i = 0; i < records->size(); ++i)
    (*records)[i] = static_cast<std::uint8_t>(mix_bits(i));
  auto dataset = four_images();
  dataset.train = Images({{records->data(), 2}}, 1, records);
  EXPECT_EQ(dataset.train.plane(1, 2), dataset.train.pixels(1));
  compare_all_crops<float>(dataset);
}

TEST(RandomCrop, EveryOffsetAndBothFlipsEquallyOften) {
  constexpr int samples = 81000;
  std::map<std::pair<int, int>, int> offsets;
  int flips = 0;
  for (int i = 0; i < samples; ++i) {
    const auto crop = random_crop(1, 0, i);
    ++offsets[{crop.top, crop.left}];
    flips += crop.flip;
  }
  ASSERT_EQ(offsets.size(), 81u);
  EXPECT_EQ(offsets.begin()->first, std::pair(0, 0));
  EXPECT_EQ(offsets.rbegin()->first, std::pair(8, 8));
  for (const auto& [offset, count] : offsets)
    EXPECT_NEAR(count, samples / 81, 160);  // 5 standard deviations
  EXPECT_NEAR(flips, samples / 2, 720);
}

TEST(RandomCrop, DependsOnSeedEpochAndPositionOnly) {
  const auto key = [](std::uint64_t seed, std::int64_t epoch, std::int64_t first) {
    std::vector<int> crops;
    for (int i = 0; i < 20; ++i) {
      const auto crop = random_crop(seed, epoch, first + i);
      crops.push_back(crop.top * 100 + crop.left * 10 + crop.flip);
    }
    return crops;
  };
  EXPECT_EQ(key(1, 2, 3), key(1, 2, 3));
  EXPECT_EQ(
      (std::set{key(1, 2, 3), key(2, 1, 3), key(1, 3, 2), key(2, 2, 3), key(1, 2, 4), key(0, 0, 0)}
           .size()),
      6u);
}

}  // namespace
}  // namespace psgd
