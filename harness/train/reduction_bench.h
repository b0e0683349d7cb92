#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <vector>

#include "compressors/scheme.h"
#include "harness/config/options.h"
#include "harness/mpi/mpi_collectives.h"
#include "harness/mpi/session.h"

namespace psgd {

/// Gradients of a model's shapes, in the buckets in which the options' implementation reduces them.
class ReductionBench {
 public:
  ReductionBench(const Options& options, MpiCollectives& collectives, torch::Device device);

  /// Times options.timed_steps reductions after options.warmup_steps untimed ones, each in turn
  /// with a bare all-reduce of the same bytes (float32) and a pass over memory (two arrays of the
  /// gradients' size read, one written). Checks the last result. All workers together. Times are
  /// seconds: the slowest worker's, the median over the steps:
  /// {"reduction", "bare_allreduce", "memory_pass", "bits", "phases", "largest_error"}
  nlohmann::ordered_json run();

 private:
  void load_gradients();
  void reduce_all(PhaseClock& clock);
  void check();

  const Options& options_;
  MpiCollectives& collectives_;
  std::unique_ptr<Scheme> scheme_;
  std::vector<Bucket> buckets_;
  std::vector<torch::Tensor> sources_;  ///< per bucket: this worker's gradients, flat
  std::vector<torch::Tensor>
      memory_before_;  ///< per bucket: memory before the last reduction, flat
  double largest_error_ = 0;
};

}  // namespace psgd
