#pragma once

#include "compressors/scheme.h"

namespace psgd {

/// The mean of the gradients, uncompressed.
///
/// PyTorch DDP: each worker divides by the number of workers, then the all-reduce sums
/// (allreduce_hook). Paper: the all-reduce sums, then each worker divides (ExactReducer). The order
/// decides the rounding.
///
/// Per step and worker: one all-reduce of every element; ResNet-18 at width 64: 44,695,848 bytes.
/// A bucket with a flat view is reduced in place; without one the gradients are copied to a buffer
/// and back.
class FullPrecision : public Scheme {
 public:
  explicit FullPrecision(Implementation implementation) : implementation_(implementation) {}

  void reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) override;

 private:
  void reduce_flat(at::Tensor& flat, Collectives& collectives, PhaseClock& clock);
  at::Tensor& buffer(const Bucket& bucket);

  Implementation implementation_;
  std::vector<at::Tensor> buffers_;  ///< by bucket index, where there is no flat view
};

}  // namespace psgd
