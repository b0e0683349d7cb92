#pragma once

// Stands in for torch/csrc/distributed/autograd/context/context.h, which Debian 12 leaves out of
// libtorch-dev although reducer.hpp includes it. The Reducer needs just these names, for a member
// that only LibTorch's RPC framework uses: a declaration with the same types keeps its layout.

#include <torch/torch.h>

#include <functional>
#include <memory>

namespace torch::distributed::autograd {

class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(torch::Tensor&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace torch::distributed::autograd
