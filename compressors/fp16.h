#pragma once

#include "compressors/scheme.h"

namespace psgd {

/// Half-precision gradients, as PyTorch's fp16_compress_hook: cast to float16, divide by the number
/// of workers in float16, sum, cast back.
///
/// Per step and worker: one all-reduce of every element in 2 bytes; ResNet-18 at width 64:
/// 22,347,924 bytes.
///
/// Range: a gradient beyond 65,504 becomes infinite at the cast, as in PyTorch. The sum cannot
/// become infinite from finite terms: the collective forms it in float32 and saturates (PyTorch's
/// over gloo would overflow where the rounding of x/n upwards lifts n * (x/n) beyond 65,504).
/// Gradients that are finite and not zero but too small for float16 after the division are lost;
/// their number is counted ("flushed_to_zero", over the run, this worker's).
class Fp16 : public Scheme {
 public:
  void reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) override;
  void visit_state(StateVisitor& visitor) override { visitor.integer("flushed_to_zero", flushed_); }
  std::map<std::string, std::int64_t> counters() const override {
    return {{"flushed_to_zero", flushed_}};
  }

 private:
  at::Tensor& buffer(const Bucket& bucket, std::int64_t elements);

  std::vector<at::Tensor> buffers_;  ///< float16, by bucket index
  std::int64_t flushed_ = 0;
};

}  // namespace psgd
