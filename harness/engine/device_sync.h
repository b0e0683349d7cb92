#pragma once

#include <torch/torch.h>

namespace psgd {

/// Waits for what was started on a GPU, so that a clock read afterwards means something. Nothing on
/// a CPU.
inline void synchronise(const torch::Device& device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

}  // namespace psgd
