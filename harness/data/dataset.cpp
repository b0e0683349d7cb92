#include "harness/data/dataset.h"

#include <algorithm>
#include <stdexcept>

#include "compressors/nearest_name.h"
#include "harness/data/mapped_file.h"
#include "harness/data/sha256.h"

namespace psgd {
namespace {

void cut(Images& images, std::int64_t wanted, const char* option, const std::string& set) {
  if (wanted < 0 || wanted > images.count())
    throw std::invalid_argument(std::string(option) + " is " + std::to_string(wanted) + ", but " +
                                set + " has " + std::to_string(images.count()) +
                                " such images; give 0 for all or a smaller number");
  if (wanted > 0) images = images.first(wanted);
}

void add_records(Sha256& digest, const Images& images) {
  for (const auto& piece : images.pieces())
    digest.add(piece.records, static_cast<std::size_t>(piece.count * images.record_bytes()));
}

}  // namespace

Images::Images(std::vector<Piece> pieces, int planes, std::shared_ptr<const void> owner)
    : pieces_(std::move(pieces)),
      owner_(std::move(owner)),
      record_bytes_(1 + static_cast<std::int64_t>(planes) * kPlanePixels),
      plane_stride_(planes == 1 ? 0 : kPlanePixels) {
  if (!pieces_.empty()) per_piece_ = std::max<std::int64_t>(pieces_.front().count, 1);
  for (const auto& piece : pieces_) count_ += piece.count;
}

Images Images::first(std::int64_t count) const {
  Images cut_off = *this;
  cut_off.pieces_.clear();
  cut_off.count_ = std::min(count, count_);
  for (std::int64_t left = cut_off.count_; const auto& piece : pieces_) {
    if (left <= 0) break;
    cut_off.pieces_.push_back({piece.records, std::min(left, piece.count)});
    left -= piece.count;
  }
  return cut_off;
}

DatasetRegistry& DatasetRegistry::instance() {
  static DatasetRegistry registry;
  return registry;
}

void DatasetRegistry::add(DatasetEntry entry) {
  for (const auto& known : entries_)
    if (known.name == entry.name)
      throw std::logic_error("data set '" + entry.name + "' is registered twice");
  entries_.push_back(std::move(entry));
}

const DatasetEntry& DatasetRegistry::find(const std::string& wanted) const {
  std::vector<std::string> known;
  for (const auto& entry : entries_) {
    if (entry.name == wanted) return entry;
    known.push_back(entry.name);
  }
  throw std::invalid_argument("data set '" + wanted + "' does not exist" +
                              nearest_name_hint(wanted, known));
}

Dataset load_dataset(const DatasetOptions& options) {
  auto dataset = DatasetRegistry::instance().find(options.name).load(options);
  cut(dataset.train, options.train_images, "train_images", dataset.name);
  cut(dataset.test, options.test_images, "test_images", dataset.name);
  return dataset;
}

std::string checksum(const Dataset& dataset) {
  Sha256 digest;
  for (const auto& path : dataset.files) {
    const MappedFile file(path);
    digest.add(file.data(), file.size());
    check_mapped_files();
  }
  if (dataset.files.empty()) {
    add_records(digest, dataset.train);
    add_records(digest, dataset.test);
  }
  return "sha256:" + digest.hex();
}

void check_labels(const Images& images, int classes,
                  const std::function<std::pair<std::string, std::int64_t>(std::int64_t)>& where) {
  for (std::int64_t i = 0; i < images.count(); ++i) {
    if (images.label(i) < classes) continue;
    const auto [file, record] = where(i);
    throw DataError(file + ": record " + std::to_string(record) + " (counted from 0) has label " +
                    std::to_string(images.label(i)) + ", but labels are 0 to " +
                    std::to_string(classes - 1) +
                    "; the file is damaged or of another format: fetch it again");
  }
  check_mapped_files();
}

}  // namespace psgd
