#pragma once

#include "harness/data/augment.h"
#include "harness/data/loader.h"

namespace psgd {

/// Uninitialised memory for `count` images.
Batch allocate_batch(std::int64_t count, const LoaderOptions& options);

/// Fills batches in either type. Uses no ATen operation, so that a background thread starts no
/// thread pool.
class BatchWriter {
 public:
  BatchWriter(const Dataset& dataset, const LoaderOptions& options);
  /// Writes image `sample` of `images`, cropped, and its label to place `place` of `batch`.
  void write(const Images& images, std::int64_t sample, const Crop& crop, std::int64_t place,
             Batch& batch) const;

 private:
  NormalisationTable<float> table_;
  NormalisationTable<double> double_table_;
  at::ScalarType dtype_;
  bool channels_last_;
};

}  // namespace psgd
