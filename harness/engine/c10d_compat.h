#pragma once

// With c10d_compat.cpp the one place that knows how LibTorch 1.x and 2.x differ in c10d.

#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <vector>

#include "compressors/collectives.h"
#include "harness/engine/serial_queue.h"

namespace psgd {

/// A process group whose collectives go through `queue` to `collectives`: what c10d::Reducer needs
/// besides the communication hook (broadcast of the rebuilt bucket order, all-reduce of the map of
/// unused parameters).
c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(Collectives& collectives,
                                                          SerialQueue& queue);

/// Parameter numbers per bucket and the buckets' size limits in bytes, last parameters first, as
/// torch.nn.parallel.DistributedDataParallel hands them to the Reducer. A bucket is closed when it
/// reaches its limit; limits.back() holds for all further buckets.
struct BucketAssignment {
  std::vector<std::vector<std::size_t>> parameters;
  std::vector<std::size_t> limits;
};
BucketAssignment assign_buckets(const std::vector<torch::Tensor>& parameters,
                                const std::vector<std::size_t>& limits);

}  // namespace psgd
