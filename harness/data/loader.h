#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "harness/data/dataset.h"

namespace psgd {

class BatchWriter;

struct LoaderOptions {
  std::int64_t batch_size = 128;  ///< images per worker
  int worker = 0;
  int workers = 1;
  std::uint64_t seed = 1;             ///< of the augmentation; the order depends on the epoch alone
  bool augment = true;                ///< TrainLoader only
  bool channels_last = false;         ///< memory format of the images
  at::ScalarType dtype = at::kFloat;  ///< or kDouble
  std::int64_t batches_per_epoch = 0;  ///< TrainLoader only; 0: all
  /// TrainLoader only: called on the background thread before each batch; may throw or wait. For
  /// tests.
  std::function<void(int epoch, std::int64_t batch)> before_batch = {};
};

/// On the CPU, in memory that the loader uses again.
struct Batch {
  at::Tensor images;  ///< dtype [B, 3, 32, 32], normalised
  at::Tensor labels;  ///< int64 [B]
};

/// A worker's training batches. A background thread prepares two ahead; nothing is allocated per
/// batch. The last incomplete batch of an epoch is dropped.
class TrainLoader {
 public:
  /// Throws std::invalid_argument if the worker's share is smaller than one batch, or if
  /// batches_per_epoch is more than there are. `dataset`'s images are shared, not copied.
  TrainLoader(const Dataset& dataset, const LoaderOptions& options);
  /// May be called at any time; waits for the batch in the making.
  ~TrainLoader();
  TrainLoader(const TrainLoader&) = delete;
  TrainLoader& operator=(const TrainLoader&) = delete;

  /// Batches per epoch.
  std::int64_t batches() const;

  /// Begins epoch `epoch` (from 0) at batch `first_batch`, and preparing at once. Batches of an
  /// epoch that was not taken to its end are dropped.
  void start_epoch(int epoch, std::int64_t first_batch = 0);

  /// The next batch; its memory is used again after the second following call. Throws what the
  /// background thread threw, this time and ever after; std::logic_error after the epoch's last
  /// batch.
  Batch next();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

/// A worker's share of the test images, in order, without padding or augmentation: worker w has
/// images w, w + n, w + 2n, ... The share may be empty, and shares may differ by one image.
class TestLoader {
 public:
  TestLoader(const Dataset& dataset, const LoaderOptions& options);
  ~TestLoader();

  /// The number of this worker's images.
  std::int64_t images() const { return static_cast<std::int64_t>(samples_.size()); }
  /// The last batch may be smaller.
  std::int64_t batches() const {
    return (images() + options_.batch_size - 1) / options_.batch_size;
  }
  /// The batches of the worker that has the most: where a forward pass contains collectives, each
  /// worker takes part in so many.
  std::int64_t most_batches() const;
  /// Batch i; its memory is used again by the next call.
  Batch batch(std::int64_t i);

 private:
  Images images_;
  LoaderOptions options_;
  std::vector<std::int64_t> samples_;
  std::unique_ptr<BatchWriter> writer_;
  Batch buffer_;
};

}  // namespace psgd
