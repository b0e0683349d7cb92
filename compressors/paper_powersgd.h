#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compressors/low_rank_kernels.h"
#include "compressors/low_rank_state.h"
#include "compressors/numpy_random.h"
#include "compressors/scheme.h"

namespace psgd {

/// The options of the paper's RankKReducer.
struct PaperPowerSgdOptions {
  std::int64_t rank = 1;
  bool reuse_query = true;  ///< warm start
  std::int64_t seed = 0;
  std::string kernels = "fast";  ///< ours, see make_low_rank_kernels
};

/// PowerSGD (Vogels, Karimireddy, Jaggi 2019, algorithms 1 and 2) as in the paper's own code,
/// RankKReducer.
///
/// Per step and worker, of a matrix [rows, columns]: (rows + columns) rank elements, in two
/// all-reduces over all matrices; tensors with one dimension or none whole, in a third that runs
/// while P is orthogonalised. ResNet-18 at width 64: rank 1 183,740 bytes, rank 2 329,040, rank 4
/// 619,640, from the first step.
///
/// Differs from PyTorch's hook: every tensor of two dimensions or more is compressed; Q is not
/// orthogonalised; Gram-Schmidt for every rank, with 1e-8 added to each norm; whole tensors have no
/// error memory (it stays 0).
///
/// Where the original stands still, this does not: a column of a reused Q that has become zero (the
/// layer had no gradient) would stay zero for ever; it is drawn again, the same on every worker
/// ("redrawn_columns").
class PaperPowerSgd : public Scheme {
 public:
  /// Draws a random Q [columns, rank]; tests put known numbers here. All workers must draw the
  /// same.
  using Draw =
      std::function<at::Tensor(std::int64_t columns, std::int64_t rank, at::ScalarType type)>;

  explicit PaperPowerSgd(PaperPowerSgdOptions options);

  /// Replaces the draw of standard normal numbers (from `seed`, as described in NumpyRandom).
  void set_draw(Draw draw) { draw_ = std::move(draw); }

  void reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) override;
  std::vector<at::Tensor> memory(int bucket_index) const override;
  void visit_state(StateVisitor& visitor) override;
  std::map<std::string, std::int64_t> counters() const override {
    return {{"redrawn_columns", redrawn_}};
  }

 private:
  void prepare_q();
  void compress_matrices(Bucket& bucket, Collectives& collectives, PhaseClock& clock);
  std::unique_ptr<Request> start_whole(Collectives& collectives, PhaseClock& clock);

  PaperPowerSgdOptions options_;
  LowRankPolicy policy_;
  std::unique_ptr<LowRankKernels> kernels_;
  NumpyRandom random_;
  Draw draw_;
  LowRankState state_;
  bool q_is_warm_ = false;
  std::int64_t steps_ = 0;
  std::int64_t redrawn_ = 0;
};

}  // namespace psgd
