#pragma once

#include <memory>
#include <string>

#include "compressors/low_rank_state.h"

namespace psgd {

/// The three passes over the matrices of a bucket that PowerSGD makes. M is the input of a matrix:
/// its gradient plus its error memory, or the gradient alone where the state has no memory. P
/// [rows, rank] and Q [columns, rank] are those of `state`.
class LowRankKernels {
 public:
  virtual ~LowRankKernels() = default;

  /// memory = gradient + memory (if there is memory); P = M Q.
  virtual void encode(LowRankState& state, const Bucket& bucket) = 0;
  /// Q = Mt P.
  virtual void project(LowRankState& state, const Bucket& bucket) = 0;
  /// gradient = P Qt; memory = memory - gradient (if there is memory).
  virtual void decode(LowRankState& state, Bucket& bucket) = 0;
};

/// "fast" or "reference". The reference is one ATen call a matrix and step. The fast one serves
/// float32 on the CPU, and hands everything else to the reference. Throws std::invalid_argument for
/// another name.
std::unique_ptr<LowRankKernels> make_low_rank_kernels(const std::string& name);

/// The scheme option that chooses between them.
OptionSpec kernels_option();

}  // namespace psgd
