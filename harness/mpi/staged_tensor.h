#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace psgd {

/// A tensor that MPI may read and write: the tensor itself, or a copy on the host.
class StagedTensor {
 public:
  StagedTensor(const at::Tensor& original, bool cuda_aware) : original_(original) {
    TORCH_CHECK(original.is_contiguous(), "collectives take contiguous tensors");
    tensor_ = original.is_cpu() || cuda_aware ? original : original.cpu();
  }
  void* data() const { return tensor_.data_ptr(); }
  std::int64_t count() const { return tensor_.numel(); }
  std::int64_t element_size() const { return tensor_.element_size(); }
  void write_back() {
    if (!tensor_.is_same(original_)) original_.copy_(tensor_);
  }

 private:
  at::Tensor original_;
  at::Tensor tensor_;
};

}  // namespace psgd
