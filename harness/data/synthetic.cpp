// Images that need no files: a coarse pattern for each class under noise. Learnable in a few
// epochs, the same on every machine, for tests.

#include <stdexcept>

#include "harness/data/counter_random.h"
#include "harness/data/dataset.h"

namespace psgd {
namespace {

constexpr std::int64_t kTrainImages = 2048;
constexpr std::int64_t kTestImages = 512;
constexpr std::int64_t kRecordBytes = 1 + kChannels * kPlanePixels;
constexpr int kPatternCell = 8;  // pixels

enum Stream : std::uint64_t { pattern, train_labels, train_noise, test_labels, test_noise };

std::uint64_t random_of(Stream stream, std::int64_t index) {
  return random_bits(0, stream, static_cast<std::uint64_t>(index));
}

/// A quarter noise, three quarters the class's pattern of 4x4 cells in each channel.
std::uint8_t pixel(int label, int p, std::uint8_t noise) {
  const int channel = p / kPlanePixels;
  const int y = p % kPlanePixels / kImageSide / kPatternCell;
  const int x = p % kImageSide / kPatternCell;
  const auto shade = static_cast<std::uint8_t>(
      random_of(pattern, ((label * kChannels + channel) * 4 + y) * 4 + x));
  return static_cast<std::uint8_t>((3 * shade + noise) / 4);
}

Images make(std::int64_t count, int classes, Stream labels, Stream noise) {
  auto records =
      std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(count * kRecordBytes));
  for (std::int64_t i = 0; i < count; ++i) {
    auto* record = records->data() + i * kRecordBytes;
    const auto label = static_cast<int>(random_of(labels, i) % static_cast<std::uint64_t>(classes));
    record[0] = static_cast<std::uint8_t>(label);
    for (int p = 0; p < kChannels * kPlanePixels; ++p)
      record[1 + p] =
          pixel(label, p, static_cast<std::uint8_t>(random_of(noise, i * kRecordBytes + p)));
  }
  return Images({{records->data(), count}}, kChannels, records);
}

Dataset load(const DatasetOptions& options) {
  if (options.train_images < 0 || options.test_images < 0)
    throw std::invalid_argument("train_images and test_images must not be negative");
  Dataset dataset;
  dataset.name = options.name;
  dataset.train = make(options.train_images == 0 ? kTrainImages : options.train_images,
                       dataset.classes, train_labels, train_noise);
  dataset.test = make(options.test_images == 0 ? kTestImages : options.test_images, dataset.classes,
                      test_labels, test_noise);
  dataset.mean.fill(0.5);
  dataset.std_deviation.fill(0.25);
  return dataset;
}

const RegisterDataset registered({"synthetic", "patterns under noise, made on the spot; for tests",
                                  load});

}  // namespace
}  // namespace psgd
