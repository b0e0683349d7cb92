#include "harness/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <functional>

#include "harness/data/loader.h"
#include "harness/data/sha256.h"
#include "tests/data/error_of.h"

namespace psgd {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uintmax_t kCifarBytes = 30730000;
// head -c 184380000 /dev/zero | sha256sum
const std::string kZeros =
    "sha256:e9737878d0fc8a6ccb0ca17a8e077751d585606795da1f3a7e4da564276f2f32";

std::string load_error(const DatasetOptions& options) {
  return error_of([&] { load_dataset(options); });
}

void put(const fs::path& path, std::uintmax_t offset, std::uint8_t byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte));
}

class TemporaryFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "psgd-data-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

// ---- CIFAR-10
// -----------------------------------------------------------------------------------------

/// Six files of the right size, all zeros (and sparse: they take no space).
class Cifar10 : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    data_ = folder_ / "cifar-10-batches-bin";
    fs::create_directory(data_);
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                             "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
      std::ofstream(data_ / name).close();
      fs::resize_file(data_ / name, kCifarBytes);
    }
  }
  std::string error() const { return load_error({.name = "cifar10", .directory = data_}); }

  fs::path data_;
};

TEST_F(Cifar10, RecordsAreWhereTheFormatPutsThem) {
  put(data_ / "data_batch_3.bin", 2 * 3073, 9);                  // label
  put(data_ / "data_batch_3.bin", 2 * 3073 + 1, 11);             // first red pixel
  put(data_ / "data_batch_3.bin", 2 * 3073 + 1 + 1024 + 5, 12);  // green
  put(data_ / "data_batch_3.bin", 3 * 3073 - 1, 13);             // last blue pixel
  put(data_ / "test_batch.bin", 9999 * 3073, 7);
  const auto dataset = load_dataset({.name = "cifar10", .directory = data_});
  EXPECT_EQ(dataset.train.count(), 50000);
  EXPECT_EQ(dataset.test.count(), 10000);
  EXPECT_EQ(dataset.train.label(20002), 9);
  EXPECT_EQ(dataset.train.label(20001), 0);
  EXPECT_EQ(dataset.train.plane(20002, 0)[0], 11);
  EXPECT_EQ(dataset.train.plane(20002, 1)[5], 12);
  EXPECT_EQ(dataset.train.plane(20002, 2)[1023], 13);
  EXPECT_EQ(dataset.test.label(9999), 7);
  EXPECT_EQ(dataset.files.size(), 6u);
}

TEST_F(Cifar10, TheFolderAboveIsAccepted) {
  const auto dataset = load_dataset({.name = "cifar10-jpeg", .directory = folder_});
  EXPECT_EQ(dataset.directory, data_);
  EXPECT_EQ(dataset.name, "cifar10-jpeg");
}

TEST_F(Cifar10, OnlyTheFirstImages) {
  const auto dataset = load_dataset(
      {.name = "cifar10", .directory = data_, .train_images = 10001, .test_images = 1});
  EXPECT_EQ(dataset.train.count(), 10001);
  EXPECT_EQ(dataset.train.pieces().size(), 2u);
  EXPECT_EQ(dataset.train.label(10000), 0);
  EXPECT_EQ(dataset.test.count(), 1);
  EXPECT_THAT(load_error({.name = "cifar10", .directory = data_, .train_images = 50001}),
              AllOf(HasSubstr("train_images is 50001"), HasSubstr("50000")));
  EXPECT_THAT(load_error({.name = "cifar10", .directory = data_, .test_images = -1}),
              HasSubstr("test_images is -1"));
}

TEST_F(Cifar10, ACutFile) {
  fs::resize_file(data_ / "data_batch_4.bin", kCifarBytes - 1);
  EXPECT_THAT(error(), AllOf(HasSubstr("data_batch_4.bin"), HasSubstr("30729999"),
                             HasSubstr("30730000"), HasSubstr("cut")));
}

TEST_F(Cifar10, AFileTooLong) {
  fs::resize_file(data_ / "test_batch.bin", kCifarBytes + 3073);
  EXPECT_THAT(error(),
              AllOf(HasSubstr("test_batch.bin"), HasSubstr("30733073"), HasSubstr("too long")));
}

TEST_F(Cifar10, AnEmptyFile) {
  fs::resize_file(data_ / "data_batch_1.bin", 0);
  EXPECT_THAT(error(),
              AllOf(HasSubstr("data_batch_1.bin has 0 bytes"), HasSubstr("fetch it again")));
}

TEST_F(Cifar10, AMissingFile) {
  fs::remove(data_ / "data_batch_2.bin");
  EXPECT_THAT(error(), AllOf(HasSubstr("data_batch_2.bin"), HasSubstr("No such file")));
}

TEST_F(Cifar10, AFolderInsteadOfAFile) {
  fs::remove(data_ / "data_batch_2.bin");
  fs::create_directory(data_ / "data_batch_2.bin");
  EXPECT_THAT(error(), AllOf(HasSubstr("data_batch_2.bin"), HasSubstr("folder")));
}

TEST_F(Cifar10, APipeInsteadOfAFile) {
  fs::remove(data_ / "data_batch_2.bin");
  ASSERT_EQ(::mkfifo((data_ / "data_batch_2.bin").c_str(), 0600), 0);
  EXPECT_THAT(error(), AllOf(HasSubstr("data_batch_2.bin"), HasSubstr("not a regular file")));
}

TEST_F(Cifar10, AnImpossibleLabel) {
  put(data_ / "data_batch_5.bin", 123 * 3073, 10);
  EXPECT_THAT(error(), AllOf(HasSubstr("data_batch_5.bin"), HasSubstr("record 123 "),
                             HasSubstr("label 10"), HasSubstr("0 to 9")));
}

TEST_F(Cifar10, NoFolderOrAnEmptyOne) {
  EXPECT_THAT(load_error({.name = "cifar10", .directory = {}}), HasSubstr("needs data_dir"));
  EXPECT_THAT(load_error({.name = "cifar10", .directory = folder_ / "nothing"}),
              AllOf(HasSubstr("nothing"), HasSubstr("data_batch_1.bin"),
                    HasSubstr("cifar-10-binary.tar.gz")));
  EXPECT_THAT(load_error({.name = "cifar10", .directory = data_ / "test_batch.bin"}),
              HasSubstr("data_batch_1.bin"));
}

TEST_F(Cifar10, TheChecksumIsThatOfTheJoinedFiles) {
  const auto dataset = load_dataset({.name = "cifar10", .directory = data_, .train_images = 5});
  EXPECT_EQ(checksum(dataset), kZeros);
  put(data_ / "test_batch.bin", kCifarBytes - 1, 1);
  EXPECT_NE(checksum(dataset), kZeros);
}

/// What reading all batches of a kind throws once `file` has been cut to 1000 records.
std::string error_after_cut(const fs::path& file, const std::function<void(const Dataset&)>& read) {
  const auto dataset = load_dataset({.name = "cifar10", .directory = file.parent_path()});
  fs::resize_file(file, 1000 * 3073);
  return error_of([&] { read(dataset); });
}

TEST_F(Cifar10, AFileCutWhileItIsUsed) {
  const auto says_so = [](const char* name) {
    return AllOf(HasSubstr(name), HasSubstr("it was cut"));
  };
  EXPECT_THAT(error_after_cut(data_ / "data_batch_2.bin",
                              [](const Dataset& dataset) {
                                TrainLoader loader(dataset, {.batch_size = 100});
                                loader.start_epoch(0);
                                for (std::int64_t i = 0; i < loader.batches(); ++i) loader.next();
                              }),
              says_so("data_batch_2.bin"));
  fs::resize_file(data_ / "data_batch_2.bin", kCifarBytes);
  EXPECT_THAT(error_after_cut(data_ / "test_batch.bin",
                              [](const Dataset& dataset) {
                                TestLoader loader(dataset, {.batch_size = 100});
                                for (std::int64_t i = 0; i < loader.batches(); ++i) loader.batch(i);
                              }),
              says_so("test_batch.bin"));
  fs::resize_file(data_ / "test_batch.bin", kCifarBytes);
  EXPECT_EQ(error(), "no error") << "what was lost is forgotten with the data set that used it";
}

// ---- Fashion-MNIST
// ------------------------------------------------------------------------------------

class FashionMnist : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    write("train-images-idx3-ubyte.gz", {0x803, 60000, 28, 28}, 60000 * 784, 2);
    write("train-labels-idx1-ubyte.gz", {0x801, 60000}, 60000, 3);
    write("t10k-images-idx3-ubyte.gz", {0x803, 10000, 28, 28}, 10000 * 784, 4);
    write("t10k-labels-idx1-ubyte.gz", {0x801, 10000}, 10000, 5);
  }

  void write(const char* name, const std::vector<std::uint32_t>& header, std::size_t bytes,
             std::uint8_t value) const {
    gzFile file = gzopen((folder_ / name).c_str(), "wb1");
    for (const auto number : header)
      for (const int shift : {24, 16, 8, 0}) gzputc(file, static_cast<int>(number >> shift & 255));
    const std::vector<std::uint8_t> body(bytes, value);
    gzwrite(file, body.data(), static_cast<unsigned>(bytes));
    gzclose(file);
  }
  std::string error() const { return load_error({.name = "fashion-mnist", .directory = folder_}); }
};

TEST_F(FashionMnist, ImagesLieInTheMiddleOfBlackOnes) {
  const auto dataset = load_dataset({.name = "fashion-mnist", .directory = folder_});
  EXPECT_EQ(dataset.train.count(), 60000);
  EXPECT_EQ(dataset.test.count(), 10000);
  EXPECT_EQ(dataset.train.label(59999), 3);
  EXPECT_EQ(dataset.test.label(9999), 5);
  for (const std::int64_t i : {0, 59999})
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) {
        const bool inside = y >= 2 && y < 30 && x >= 2 && x < 30;
        ASSERT_EQ(dataset.train.plane(i, 1)[y * 32 + x], inside ? 2 : 0) << y << " " << x;
      }
}

TEST_F(FashionMnist, OnlyTheFirstImages) {
  const auto dataset = load_dataset(
      {.name = "fashion-mnist", .directory = folder_, .train_images = 7, .test_images = 3});
  EXPECT_EQ(dataset.train.count(), 7);
  EXPECT_EQ(dataset.test.count(), 3);
  EXPECT_THAT(load_error({.name = "fashion-mnist", .directory = folder_, .test_images = 10001}),
              HasSubstr("test_images is 10001"));
}

TEST_F(FashionMnist, DamagedFiles) {
  const auto images = folder_ / "train-images-idx3-ubyte.gz";
  fs::resize_file(images, fs::file_size(images) / 2);
  EXPECT_THAT(error(), AllOf(HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr("ends early")));
  fs::resize_file(images, 0);
  EXPECT_THAT(error(), HasSubstr("ends early"));
  fs::remove(images);
  EXPECT_THAT(error(), AllOf(HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr("No such file")));
  fs::create_directory(images);
  EXPECT_THAT(error(), AllOf(HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr("folder")));
}

TEST_F(FashionMnist, WrongHeaders) {
  write("t10k-labels-idx1-ubyte.gz", {0x803, 10000}, 10000, 5);
  EXPECT_THAT(error(), AllOf(HasSubstr("t10k-labels"),
                             HasSubstr("magic number is 2051, but should be 2049")));
  write("t10k-labels-idx1-ubyte.gz", {0x801, 9999}, 10000, 5);
  EXPECT_THAT(error(), HasSubstr("number of labels is 9999, but should be 10000"));
  write("t10k-labels-idx1-ubyte.gz", {0x801, 10000}, 10001, 5);
  EXPECT_THAT(error(), HasSubstr("goes on after its last record"));
  write("t10k-labels-idx1-ubyte.gz", {0x801, 10000}, 10000, 200);
  EXPECT_THAT(error(), AllOf(HasSubstr("t10k-labels"), HasSubstr("label 200")));
}

// ---- The rest
// -----------------------------------------------------------------------------------------

TEST(Synthetic, IsTheSameAnywhereAndKeepsItsFirstImages) {
  const auto all = load_dataset({.name = "synthetic", .directory = {}});
  EXPECT_EQ(all.train.count(), 2048);
  EXPECT_EQ(all.test.count(), 512);
  const auto few =
      load_dataset({.name = "synthetic", .directory = {}, .train_images = 3, .test_images = 2});
  EXPECT_EQ(few.train.count(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(few.train.label(i), all.train.label(i));
    EXPECT_TRUE(std::equal(few.train.pixels(i), few.train.pixels(i) + 3072, all.train.pixels(i)));
  }
  std::array<int, 10> labels{};
  for (std::int64_t i = 0; i < 2048; ++i) ++labels[static_cast<std::size_t>(all.train.label(i))];
  for (const int count : labels) EXPECT_NEAR(count, 205, 70);
  EXPECT_NE(checksum(all), checksum(few));
  EXPECT_EQ(checksum(all), checksum(load_dataset({.name = "synthetic", .directory = {}})));
}

TEST(Datasets, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_THAT(load_error({.name = "cifar-10", .directory = {}}),
              AllOf(HasSubstr("did you mean 'cifar10'"), HasSubstr("synthetic")));
  EXPECT_THROW(DatasetRegistry::instance().add({"cifar10", "", {}}), std::logic_error);
}

std::string sha256_of(const std::string& text, std::size_t part) {
  Sha256 digest;
  for (std::size_t i = 0; i < text.size(); i += part)
    digest.add(reinterpret_cast<const std::uint8_t*>(text.data()) + i,
               std::min(part, text.size() - i));
  return digest.hex();
}

// The examples of FIPS 180-4.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_of("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc", 1),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (const std::size_t part : {1, 7, 55, 56, 63, 64, 65, 1000, 1000000})
    EXPECT_EQ(sha256_of(std::string(1000000, 'a'), part),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace psgd
