#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/error.h"

namespace psgd {

/// A data file is missing, damaged or not what its name says. The message names the file, what was
/// expected and what was found.
struct DataError : Error {
  using Error::Error;
};

constexpr int kImageSide = 32;
constexpr int kPlanePixels = kImageSide * kImageSide;
constexpr int kChannels = 3;

/// Labelled 32x32 images of bytes, where they lie: in files mapped read-only, whose pages all
/// workers of a machine share, or in memory. An image is a record of a label byte and its planes
/// (CIFAR-10's format); a grey image has one plane, which then stands for all three channels.
class Images {
 public:
  /// Records one after another.
  struct Piece {
    const std::uint8_t* records;
    std::int64_t count;
  };

  Images() = default;
  /// Pieces of equal count; the last may be shorter. `planes`: 1 or 3. `owner` keeps the memory
  /// alive.
  Images(std::vector<Piece> pieces, int planes, std::shared_ptr<const void> owner);

  std::int64_t count() const { return count_; }
  /// Image i's first plane: 32 rows of 32 bytes; image i in 0 .. count() - 1.
  const std::uint8_t* pixels(std::int64_t i) const { return record(i) + 1; }
  /// One channel's plane of image i: 1024 bytes.
  const std::uint8_t* plane(std::int64_t i, int channel) const {
    return pixels(i) + channel * plane_stride_;
  }
  std::int64_t label(std::int64_t i) const { return *record(i); }

  /// The same, without the images from `count` on.
  Images first(std::int64_t count) const;
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::int64_t record_bytes() const { return record_bytes_; }

 private:
  const std::uint8_t* record(std::int64_t i) const {
    return pieces_[static_cast<std::size_t>(i / per_piece_)].records +
           (i % per_piece_) * record_bytes_;
  }

  std::vector<Piece> pieces_;
  std::shared_ptr<const void> owner_;
  std::int64_t count_ = 0;
  std::int64_t per_piece_ = 1;
  std::int64_t record_bytes_ = 0;
  std::int64_t plane_stride_ = 0;
};

struct DatasetOptions {
  std::string name;
  std::filesystem::path directory;  ///< empty: the set's usual place, if it has one
  std::int64_t train_images = 0;    ///< only the first so many; 0: all
  std::int64_t test_images = 0;
};

struct Dataset {
  std::string name;
  std::filesystem::path directory;  ///< where the files were found; empty if there are none
  std::vector<std::filesystem::path> files;  ///< in the order in which checksum() joins them
  Images train;
  Images test;
  std::array<double, kChannels> mean{};           ///< of values in 0 .. 1
  std::array<double, kChannels> std_deviation{};  ///< likewise
  int classes = 10;
};

struct DatasetEntry {
  std::string name;
  std::string summary;  ///< one line for `list`
  std::function<Dataset(const DatasetOptions&)> load;
};

class DatasetRegistry {
 public:
  static DatasetRegistry& instance();

  /// Throws std::logic_error on a second entry with the same name.
  void add(DatasetEntry entry);
  const std::vector<DatasetEntry>& entries() const { return entries_; }
  /// Throws std::invalid_argument that lists the known names.
  const DatasetEntry& find(const std::string& name) const;

 private:
  std::vector<DatasetEntry> entries_;
};

/// Put one, static, into the data set's .cpp file.
struct RegisterDataset {
  explicit RegisterDataset(DatasetEntry entry) {
    DatasetRegistry::instance().add(std::move(entry));
  }
};

/// Finds the set, checks sizes and every label, cuts to the numbers asked for. Throws
/// std::invalid_argument for an unknown name or more images than there are, DataError for missing
/// or damaged files.
Dataset load_dataset(const DatasetOptions& options);

/// "sha256:" and the digest of the set's files joined in the order of `files`, as `cat FILE... |
/// sha256sum` gives it; for a set without files, of its training and then test records. Reads
/// everything: about 1 s for CIFAR-10.
std::string checksum(const Dataset& dataset);

/// Throws DataError on a label outside 0 .. classes - 1, naming record and label. `where(i)` names
/// the file of record i and counts it from the start of that file.
void check_labels(const Images& images, int classes,
                  const std::function<std::pair<std::string, std::int64_t>(std::int64_t)>& where);

}  // namespace psgd
