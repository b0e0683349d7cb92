// Fashion-MNIST (Xiao et al. 2017, arXiv 1708.07747) from gzipped IDX files, as Debian's package
// dataset-fashion-mnist installs them. 28x28 grey images in the middle of 32x32 black ones.

#include <zlib.h>

#include <cstring>

#include "harness/data/dataset.h"
#include "harness/data/mapped_file.h"

namespace psgd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualDirectory = "/usr/share/datasets/fashion-mnist";
constexpr int kSide = 28;
constexpr int kMargin = (kImageSide - kSide) / 2;
constexpr std::int64_t kRecordBytes = 1 + kPlanePixels;

/// Reads a gzip file from its start.
class GzipReader {
 public:
  explicit GzipReader(const fs::path& path) : path_(path.string()) {
    { const MappedFile checked(path); }  // its messages are better than zlib's
    file_ = gzopen(path_.c_str(), "rb");
    if (file_ == nullptr) throw DataError("cannot read " + path_ + ": not enough memory for zlib");
    gzbuffer(file_, 1 << 17);
  }
  ~GzipReader() { gzclose(file_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Exactly `count` bytes, or DataError.
  void read(std::uint8_t* bytes, unsigned count) {
    const int got = gzread(file_, bytes, count);
    if (got == static_cast<int>(count)) return;
    int code = Z_OK;
    const char* reason = gzerror(file_, &code);
    fail("it ends early or is damaged" +
         (code == Z_OK ? std::string() : " (zlib: " + std::string(reason) + ")"));
  }

  std::int64_t read_big_endian() {
    std::uint8_t bytes[4];
    read(bytes, 4);
    return std::int64_t{bytes[0]} << 24 | std::int64_t{bytes[1]} << 16 |
           std::int64_t{bytes[2]} << 8 | bytes[3];
  }

  /// Reads a number of the header; DataError if it is not `expected`.
  void expect(const char* what, std::int64_t expected) {
    const auto found = read_big_endian();
    if (found != expected)
      fail(std::string(what) + " is " + std::to_string(found) + ", but should be " +
           std::to_string(expected));
  }

  void expect_end() {
    std::uint8_t byte;
    if (gzread(file_, &byte, 1) != 0)
      fail("it goes on after its last record, or its checksum is wrong");
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw DataError(path_ + ": " + reason +
                    "; install dataset-fashion-mnist again, or name its folder in data_dir");
  }

 private:
  std::string path_;
  gzFile file_ = nullptr;
};

/// The first `wanted` images, or all `count` where `wanted` is 0. Files read to their end are
/// checked to it.
Images read_images(const fs::path& image_path, const fs::path& label_path, std::int64_t count,
                   std::int64_t wanted, int classes) {
  GzipReader images(image_path);
  images.expect("the magic number", 0x803);
  images.expect("the number of images", count);
  images.expect("the height", kSide);
  images.expect("the width", kSide);
  GzipReader labels(label_path);
  labels.expect("the magic number", 0x801);
  labels.expect("the number of labels", count);

  // More than there are is refused by load_dataset(), which knows the option's name.
  const auto taken = wanted > 0 && wanted < count ? wanted : count;
  auto records =
      std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(taken * kRecordBytes));
  for (std::int64_t i = 0; i < taken; ++i) {
    std::uint8_t image[kSide * kSide];
    images.read(image, sizeof image);
    auto* record = records->data() + i * kRecordBytes;
    labels.read(record, 1);
    auto* rows = record + 1 + kMargin * kImageSide + kMargin;
    for (int y = 0; y < kSide; ++y) std::memcpy(rows + y * kImageSide, image + y * kSide, kSide);
  }
  if (taken == count) {
    images.expect_end();
    labels.expect_end();
  }
  Images read({{records->data(), taken}}, 1, records);
  check_labels(read, classes, [&](std::int64_t i) { return std::pair(label_path.string(), i); });
  return read;
}

Dataset load(const DatasetOptions& options) {
  Dataset dataset;
  dataset.name = options.name;
  dataset.directory = options.directory.empty() ? fs::path(kUsualDirectory) : options.directory;
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                           "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
    dataset.files.push_back(dataset.directory / name);
  const auto& files = dataset.files;
  dataset.train = read_images(files[0], files[1], 60000, options.train_images, dataset.classes);
  dataset.test = read_images(files[2], files[3], 10000, options.test_images, dataset.classes);
  // Mean and deviation of the padded training images.
  dataset.mean.fill(0.2190);
  dataset.std_deviation.fill(0.3318);
  return dataset;
}

const RegisterDataset registered({"fashion-mnist",
                                  "Fashion-MNIST, grey, padded to 32x32; Debian packages it",
                                  load});

}  // namespace
}  // namespace psgd
