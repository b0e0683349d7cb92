#include <algorithm>
#include <stdexcept>

#include "harness/data/batch_writer.h"
#include "harness/data/loader.h"
#include "harness/data/mapped_file.h"
#include "harness/data/sampler.h"

namespace psgd {

TestLoader::TestLoader(const Dataset& dataset, const LoaderOptions& options)
    : images_(dataset.test),
      options_(options),
      samples_(test_shard(dataset.test.count(), options.worker, options.workers)),
      writer_(std::make_unique<BatchWriter>(dataset, options)) {
  if (options.batch_size < 1)
    throw std::invalid_argument("test_batch_size is " + std::to_string(options.batch_size) +
                                ", but must be at least 1");
  buffer_ = allocate_batch(std::min(options.batch_size, images()), options);
}

TestLoader::~TestLoader() = default;

std::int64_t TestLoader::most_batches() const {
  const auto most = shard_size(images_.count(), options_.workers);
  return (most + options_.batch_size - 1) / options_.batch_size;
}

Batch TestLoader::batch(std::int64_t i) {
  if (i < 0 || i >= batches())
    throw std::out_of_range("test batch " + std::to_string(i) + " of " + std::to_string(batches()) +
                            " does not exist");
  const auto first = i * options_.batch_size;
  const auto count = std::min(options_.batch_size, images() - first);
  for (std::int64_t place = 0; place < count; ++place)
    writer_->write(images_, samples_[static_cast<std::size_t>(first + place)], Crop{}, place,
                   buffer_);
  check_mapped_files();
  return {buffer_.images.narrow(0, 0, count), buffer_.labels.narrow(0, 0, count)};
}

}  // namespace psgd
