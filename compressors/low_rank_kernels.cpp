#include "compressors/low_rank_kernels.h"

#include <stdexcept>

#include "compressors/fast_kernels.h"
#include "compressors/nearest_name.h"

namespace psgd {
namespace {

at::Tensor as_matrix(const LowRankMatrix& matrix, const Bucket& bucket) {
  return bucket.gradients[matrix.gradient].view({matrix.rows, matrix.columns});
}

const at::Tensor& input(const LowRankMatrix& matrix, const at::Tensor& gradient) {
  return matrix.memory.defined() ? matrix.memory : gradient;
}

class ReferenceKernels : public LowRankKernels {
 public:
  void encode(LowRankState& state, const Bucket& bucket) override {
    for (auto& matrix : state.matrices) {
      const at::Tensor gradient = as_matrix(matrix, bucket);
      if (matrix.memory.defined()) matrix.memory.add_(gradient);
      // Pt = Qt Mt
      at::mm_out(matrix.p, matrix.q, input(matrix, gradient).t());
    }
  }

  void project(LowRankState& state, const Bucket& bucket) override {
    for (auto& matrix : state.matrices) {
      // Qt = Pt M
      at::mm_out(matrix.q, matrix.p, input(matrix, as_matrix(matrix, bucket)));
    }
  }

  void decode(LowRankState& state, Bucket& bucket) override {
    for (auto& matrix : state.matrices) {
      at::Tensor gradient = as_matrix(matrix, bucket);
      at::mm_out(gradient, matrix.p.t(), matrix.q);
      if (matrix.memory.defined()) matrix.memory.sub_(gradient);
    }
  }
};

/// The loops of fast_kernels.h over the matrices of a bucket.
class FastKernels : public LowRankKernels {
 public:
  void encode(LowRankState& state, const Bucket& bucket) override {
    if (!serves(state)) return reference_.encode(state, bucket);
    for (auto& matrix : state.matrices) fast::encode(view(matrix, bucket));
  }

  // The passes run through the matrices in alternate directions: what the one before touched last
  // is still in the cache.
  void project(LowRankState& state, const Bucket& bucket) override {
    if (!serves(state)) return reference_.project(state, bucket);
    for (auto matrix = state.matrices.rbegin(); matrix != state.matrices.rend(); ++matrix)
      fast::project(view(*matrix, bucket));
  }

  void decode(LowRankState& state, Bucket& bucket) override {
    if (!serves(state)) return reference_.decode(state, bucket);
    for (auto& matrix : state.matrices) fast::decode(view(matrix, bucket));
  }

 private:
  static bool serves(const LowRankState& state) {
    return state.p.is_cpu() && state.p.scalar_type() == at::kFloat &&
           fast::kLargestRank >= state.largest_rank();
  }

  static fast::MatrixView view(const LowRankMatrix& matrix, const Bucket& bucket) {
    return {bucket.gradients[matrix.gradient].data_ptr<float>(),
            matrix.memory.defined() ? matrix.memory.data_ptr<float>() : nullptr,
            matrix.p.data_ptr<float>(),
            matrix.q.data_ptr<float>(),
            matrix.rows,
            matrix.columns,
            matrix.rank};
  }

  ReferenceKernels reference_;
};

const char* const kFast = "fast";
const char* const kReference = "reference";

}  // namespace

std::unique_ptr<LowRankKernels> make_low_rank_kernels(const std::string& name) {
  if (name == kFast) return std::make_unique<FastKernels>();
  if (name == kReference) return std::make_unique<ReferenceKernels>();
  throw std::invalid_argument("scheme option 'kernels' is '" + name + "'" +
                              nearest_name_hint(name, {kFast, kReference}));
}

OptionSpec kernels_option() {
  return {"kernels", std::string(kFast),
          "'fast' loops, or the plain 'reference' that they are tested against"};
}

}  // namespace psgd
