#pragma once

#include <vector>

#include "compressors/scheme.h"
#include "harness/optim/named_tensor.h"

namespace psgd {

struct SgdOptions {
  Implementation implementation =
      Implementation::ddp;  ///< whose nesterov step and weight-decay rule
  double momentum = 0.9;
  double weight_decay = 1e-4;
  bool fused = true;  ///< false: the plain version, which tests compare the fused one with
};

/// The numbers of one parameter's step.
struct SgdCoefficients {
  double learning_rate;
  double weight_decay;
  double momentum;
  double lookahead;  ///< the step goes along gradient + lookahead * momentum buffer
};

/// g = gradient + weight_decay * parameter;  m = momentum * m + g;
/// parameter -= learning_rate * (g + lookahead * m).  `gradient` is left as it was.
/// Plain ATen operations: the definition, and the way for any device and layout.
void sgd_step_reference(at::Tensor& parameter, const at::Tensor& gradient, at::Tensor& momentum,
                        const SgdCoefficients& coefficients);

/// The same in one pass over memory: three arrays read, two written. Only for tensors of which
/// same_dense_layout() holds.
void sgd_step_fused(at::Tensor& parameter, const at::Tensor& gradient, at::Tensor& momentum,
                    const SgdCoefficients& coefficients);

/// SGD with nesterov momentum, in the forms of the two originals. They differ in the step's
/// direction: g + 0.9 m in PyTorch DDP (torch.optim.SGD with nesterov=True), g + m in Paper. Weight
/// decay is added to the averaged gradient, for the parameters that has_weight_decay() names.
///
/// The originals set m = g at the first step. Here m begins with zeros, which is the same number
/// (0.9 * 0 + g) and spares a flag. With momentum 0 the step goes along g alone, as in
/// torch.optim.SGD.
class Sgd {
 public:
  /// Keeps handles to `parameters`, not copies: convert the model's type and device before.
  Sgd(std::vector<NamedTensor> parameters, SgdOptions options);

  /// One step along `gradients`, one per parameter in their order and shape. A parameter whose
  /// gradient is undefined is left alone, its momentum too. Throws std::invalid_argument on another
  /// number of gradients or another shape.
  void step(const std::vector<at::Tensor>& gradients, double learning_rate);

  /// Momentum buffers, under "momentum.<parameter>".
  void visit_state(StateVisitor& visitor);

 private:
  SgdCoefficients coefficients(std::size_t i, double learning_rate) const;

  std::vector<NamedTensor> parameters_;
  std::vector<at::Tensor> momentum_;
  std::vector<bool> decays_;
  SgdOptions options_;
};

}  // namespace psgd
