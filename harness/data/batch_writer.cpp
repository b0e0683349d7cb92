#include "harness/data/batch_writer.h"

#include <stdexcept>

namespace psgd {

Batch allocate_batch(std::int64_t count, const LoaderOptions& options) {
  const auto format =
      options.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return {at::empty({count, kChannels, kImageSide, kImageSide},
                    at::TensorOptions().dtype(options.dtype), format),
          at::empty({count}, at::TensorOptions().dtype(at::kLong))};
}

BatchWriter::BatchWriter(const Dataset& dataset, const LoaderOptions& options)
    : table_(normalisation_table<float>(dataset)),
      double_table_(normalisation_table<double>(dataset)),
      dtype_(options.dtype),
      channels_last_(options.channels_last) {
  if (dtype_ != at::kFloat && dtype_ != at::kDouble)
    throw std::invalid_argument("images are loaded as float32 or float64 only");
}

void BatchWriter::write(const Images& images, std::int64_t sample, const Crop& crop,
                        std::int64_t place, Batch& batch) const {
  const auto offset = place * kChannels * kPlanePixels;
  if (dtype_ == at::kFloat)
    write_image(images, sample, crop, table_, channels_last_,
                batch.images.data_ptr<float>() + offset);
  else
    write_image(images, sample, crop, double_table_, channels_last_,
                batch.images.data_ptr<double>() + offset);
  batch.labels.data_ptr<std::int64_t>()[place] = images.label(sample);
}

}  // namespace psgd
