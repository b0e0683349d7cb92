// CIFAR-10, binary version: five training files and one test file of 10,000 records, each a label
// byte and three planes of 1,024 bytes (https://www.cs.toronto.edu/~kriz/cifar.html).

#include "harness/data/dataset.h"
#include "harness/data/mapped_file.h"

namespace psgd {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRecordBytes = 1 + kChannels * kPlanePixels;
constexpr std::int64_t kRecordsPerFile = 10000;
constexpr const char* kSubfolder = "cifar-10-batches-bin";
constexpr const char* kTestFile = "test_batch.bin";

std::string train_file(int number) { return "data_batch_" + std::to_string(number) + ".bin"; }

/// Accepts the folder with the files, or the one above it.
fs::path find_directory(const DatasetOptions& options) {
  if (options.directory.empty())
    throw DataError("data set " + options.name +
                    " needs data_dir: the folder with the six .bin files of CIFAR-10's " +
                    "binary version, or the folder above it");
  for (const auto& candidate : {options.directory, options.directory / kSubfolder}) {
    std::error_code ignored;
    if (fs::exists(candidate / train_file(1), ignored) ||
        fs::exists(candidate / kTestFile, ignored))
      return candidate;
  }
  throw DataError(
      "data set " + options.name + ": neither " + options.directory.string() +
      " nor its subfolder " + kSubfolder + " holds " + train_file(1) +
      "; data_dir must be the folder with the six .bin files of CIFAR-10's binary version "
      "(cifar-10-binary.tar.gz, unpacked), or the folder above it");
}

std::shared_ptr<const MappedFile> open_checked(const fs::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  constexpr auto expected = static_cast<std::size_t>(kRecordBytes * kRecordsPerFile);
  if (file->size() != expected)
    throw DataError(
        path.string() + " has " + std::to_string(file->size()) + " bytes, but should have " +
        std::to_string(expected) + " (10,000 records of 3,073); it is " +
        (file->size() < expected ? "cut" : "too long") + " or of another format: fetch it again");
  return file;
}

Images images_of(const std::vector<fs::path>& paths, int classes) {
  auto files = std::make_shared<std::vector<std::shared_ptr<const MappedFile>>>();
  std::vector<Images::Piece> pieces;
  for (const auto& path : paths) {
    files->push_back(open_checked(path));
    pieces.push_back({files->back()->data(), kRecordsPerFile});
  }
  Images images(std::move(pieces), kChannels, std::move(files));
  check_labels(images, classes, [&](std::int64_t i) {
    return std::pair(paths[static_cast<std::size_t>(i / kRecordsPerFile)].string(),
                     i % kRecordsPerFile);
  });
  return images;
}

Dataset load(const DatasetOptions& options) {
  Dataset dataset;
  dataset.name = options.name;
  dataset.directory = find_directory(options);
  for (int number = 1; number <= 5; ++number)
    dataset.files.push_back(dataset.directory / train_file(number));
  dataset.train = images_of(dataset.files, dataset.classes);
  dataset.test = images_of({dataset.directory / kTestFile}, dataset.classes);
  dataset.files.push_back(dataset.directory / kTestFile);
  // The numbers of the paper's code.
  dataset.mean = {0.4914, 0.4822, 0.4465};
  dataset.std_deviation = {0.2023, 0.1994, 0.2010};
  return dataset;
}

const RegisterDataset registered({"cifar10", "CIFAR-10, binary version, as published", load});
// Named apart, because results on other pixels are other results.
const RegisterDataset registered_jpeg({"cifar10-jpeg",
                                       "CIFAR-10 in the same format, from JPEG copies", load});

}  // namespace
}  // namespace psgd
