#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compressors/low_rank_kernels.h"
#include "compressors/low_rank_state.h"
#include "compressors/numpy_random.h"
#include "compressors/scheme.h"

namespace psgd {

/// The options of PyTorch's PowerSGDState, with its defaults (start_iteration: the notebook's).
struct DdpPowerSgdOptions {
  std::int64_t rank = 1;             ///< matrix_approximation_rank
  std::int64_t start_iteration = 2;  ///< start_powerSGD_iter
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  double orthogonalization_epsilon = 0;
  std::int64_t random_seed = 0;
  bool batch_tensors_with_same_shape = false;
  std::string kernels = "fast";  ///< ours, see make_low_rank_kernels
};

/// PowerSGD (Vogels, Karimireddy, Jaggi 2019, algorithms 1 and 2) as in PyTorch's powerSGD_hook.
///
/// Per step and worker, of a matrix [rows, columns]: (rows + columns) rank elements, in two
/// all-reduces over all matrices of a bucket; all other tensors whole. ResNet-18 at width 64: rank
/// 1 183,740 bytes, rank 2 329,040, rank 4 619,640; the first `start_iteration` steps: full
/// precision.
///
/// A tensor is compressed if it has two dimensions or more and (rows + columns) rank
/// min_compression_rate < rows columns, with the rank clipped to min(rows, columns) as in PyTorch.
/// (For a minimum rate of 1 or more, clipping makes no difference to this.)
///
/// Where PyTorch's hook gives NaN (a column of zeros under epsilon 0, or a Q that is not finite),
/// this one does not: see gram_schmidt, and such columns of a warm-start Q are drawn again, the
/// same on every worker
/// ("redrawn_columns" counts them). `batch_tensors_with_same_shape` matters only to the random Q:
/// it is drawn for all matrices of one shape at once, as in PyTorch; the loops are batched in any
/// case.
class DdpPowerSgd : public Scheme {
 public:
  /// Throws std::invalid_argument for options that contradict each other.
  explicit DdpPowerSgd(DdpPowerSgdOptions options);

  void reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) override;
  std::vector<at::Tensor> memory(int bucket_index) const override;
  void visit_state(StateVisitor& visitor) override;
  std::map<std::string, std::int64_t> counters() const override {
    return {{"redrawn_columns", redrawn_}};
  }

 private:
  struct BucketState {
    LowRankState low_rank;
    bool q_is_warm = false;
  };

  LowRankPolicy policy() const;
  BucketState& prepare(const Bucket& bucket);
  void compress(BucketState& state, Bucket& bucket, Collectives& collectives, PhaseClock& clock);
  void prepare_q(BucketState& state, int bucket_index);
  void draw_q(LowRankState& state);
  void visit_bucket(BucketState& state, const std::string& prefix, StateVisitor& visitor);

  DdpPowerSgdOptions options_;
  LowRankPolicy policy_;
  std::unique_ptr<LowRankKernels> kernels_;
  std::unique_ptr<Scheme> full_precision_;  ///< for the first steps
  NumpyRandom random_;
  std::vector<BucketState> buckets_;  ///< by bucket index
  std::int64_t iteration_ = 0;        ///< steps that are complete
  std::int64_t redrawn_ = 0;
};

}  // namespace psgd
