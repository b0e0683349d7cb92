#pragma once

#include <torch/torch.h>

namespace psgd {

/// relu(sum + addend), written into `sum`'s memory in one pass. Differentiable. Both of one shape.
/// `sum` must be a fresh result that nothing else needs for its gradient (a batch norm's output is
/// one).
torch::Tensor add_relu_(torch::Tensor sum, const torch::Tensor& addend);

}  // namespace psgd
