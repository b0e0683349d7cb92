#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "compressors/collectives.h"
#include "compressors/phase_clock.h"
#include "compressors/scheme.h"

namespace psgd {

/// A parameter and its name in the model, in registration order.
struct NamedParameter {
  std::string name;
  torch::Tensor tensor;
};

/// Loss (mean over the batch) and logits [B, classes] of one batch on this worker, without history.
struct BatchResult {
  torch::Tensor loss;
  torch::Tensor logits;
};

/// One of the two ways to get from a batch to averaged gradients.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Forward pass, loss, backward pass and reduction. Afterwards every parameter's grad() is the
  /// mean over the workers as the scheme formed it. Adds to the phases buffers, forward, backward,
  /// wait, reduce and its parts.
  virtual BatchResult forward_backward(const torch::Tensor& images, const torch::Tensor& labels,
                                       PhaseClock& clock) = 0;

  /// Goes through one forward and backward pass that reduces nothing. A step that is continued from
  /// a checkpoint then finds the engine as a second step does: PyTorch DDP has seen in which order
  /// gradients arrive, and has its final buckets. Changes BN statistics and gradients; to be called
  /// before the state is restored.
  virtual void rehearse(const torch::Tensor& images, const torch::Tensor& labels) {
    (void)images;
    (void)labels;
  }

  /// What the implementation does to the model's buffers (BN statistics) before it is tested.
  virtual void prepare_test() {}
};

/// What both engines are made of. All must outlive the engine.
struct EngineParts {
  std::function<torch::Tensor(const torch::Tensor&)> forward;  ///< images to logits
  std::vector<torch::Tensor> parameters;
  std::vector<torch::Tensor> buffers;
  Scheme& scheme;
  Collectives& collectives;
};

/// PyTorch DDP's settings; see torch.nn.parallel.DistributedDataParallel.
struct DdpOptions {
  double bucket_mib = 25;
  double first_bucket_mib = 1;
  bool gradient_as_bucket_view = true;
  bool find_unused_parameters = false;
};

/// Gradients of the whole model, reduced after the backward pass (the paper's training loop).
std::unique_ptr<Engine> make_paper_engine(EngineParts parts);
/// Gradients reduced bucket by bucket during the backward pass, by LibTorch's own c10d::Reducer.
std::unique_ptr<Engine> make_ddp_engine(EngineParts parts, const DdpOptions& options);

}  // namespace psgd
