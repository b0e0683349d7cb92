// The readers of data sets: any files either are refused with an error of ours or give images whose
// labels are in range and whose pixels can all be read. The first byte chooses the set.
//   odd:  Fashion-MNIST, of which two images each are read; the rest of the input is cut into four
//   equal parts,
//         the four files (zlib reads them packed or unpacked).
//   even: CIFAR-10; the second byte chooses a file, the next three a place in it, the rest is
//   written there, and where
//         the first byte is above 127 the file ends there.

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "harness/data/dataset.h"
#include "tests/fuzz/fuzz_folder.h"

namespace {

constexpr std::uintmax_t kCifarBytes = 30'730'000;

volatile std::uint64_t sink = 0;  // so that the reading is not optimised away

void check(const psgd::Images& images, int classes) {
  std::uint64_t sum = 0;
  const std::int64_t step = std::max<std::int64_t>(1, images.count() / 8);
  for (std::int64_t i = 0; i < images.count(); i += step) {
    if (images.label(i) < 0 || images.label(i) >= classes) std::abort();
    for (int channel = 0; channel < psgd::kChannels; ++channel)
      for (int pixel = 0; pixel < psgd::kPlanePixels; ++pixel)
        sum += images.plane(i, channel)[pixel];
  }
  sink = sum;
}

void load(const psgd::DatasetOptions& options) {
  try {
    const auto dataset = psgd::load_dataset(options);
    check(dataset.train, dataset.classes);
    check(dataset.test, dataset.classes);
  } catch (const psgd::Error&) {
  } catch (const std::invalid_argument&) {
  }
}

void fashion_mnist(std::string_view bytes) {
  static const psgd::FuzzFolder folder("fashion");
  const std::size_t part = bytes.size() / 4;
  std::size_t place = 0;
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                           "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
    folder.write(name, bytes.substr(part * place++, part));
  load({"fashion-mnist", folder.path(), 2, 2});
}

const std::array<std::string, 6> kCifarFiles = {"data_batch_1.bin", "data_batch_2.bin",
                                                "data_batch_3.bin", "data_batch_4.bin",
                                                "data_batch_5.bin", "test_batch.bin"};

void write_at(const std::filesystem::path& file, std::uintmax_t place, std::string_view bytes) {
  std::fstream patch(file, std::ios::binary | std::ios::in | std::ios::out);
  patch.seekp(static_cast<std::streamoff>(place));
  patch.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void cifar10(std::uint8_t choice, std::string_view bytes) {
  static const psgd::FuzzFolder folder("cifar");
  static const bool made = [] {
    for (const auto& name : kCifarFiles) {
      std::ofstream(folder.path() / name, std::ios::binary).close();
      std::filesystem::resize_file(folder.path() / name, kCifarBytes);  // zeros that take no room
    }
    return true;
  }();
  if (!made || bytes.size() < 4) return;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const auto file = folder.path() / kCifarFiles[byte(0) % kCifarFiles.size()];
  const auto place =
      static_cast<std::uintmax_t>(byte(1) << 16 | byte(2) << 8 | byte(3)) * 2 % kCifarBytes;
  const std::string_view patch = bytes.substr(4);
  write_at(file, place, patch);
  if (choice > 127) std::filesystem::resize_file(file, place);
  load({"cifar10", folder.path(), 0, 0});
  // Zeros where it was changed; made anew, the file would have to be mapped page by page each time.
  write_at(file, place, std::string(patch.size(), '\0'));
  std::filesystem::resize_file(file, kCifarBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1)
    fashion_mnist(rest);
  else
    cifar10(data[0], rest);
  return 0;
}
