#include "harness/optim/sgd.h"

#include <ATen/Parallel.h>

#include <sstream>
#include <stdexcept>

#include "harness/optim/weight_decay.h"

namespace psgd {
namespace {

template <typename T>
void step_range(T* __restrict parameter, const T* __restrict gradient, T* __restrict momentum,
                std::int64_t count, const SgdCoefficients& coefficients) {
  const T rate = static_cast<T>(coefficients.learning_rate);
  const T decay = static_cast<T>(coefficients.weight_decay);
  const T kept = static_cast<T>(coefficients.momentum);
  const T lookahead = static_cast<T>(coefficients.lookahead);
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] + decay * parameter[i];
    const T m = kept * momentum[i] + g;
    momentum[i] = m;
    parameter[i] -= rate * (g + lookahead * m);
  }
}

}  // namespace

void sgd_step_reference(at::Tensor& parameter, const at::Tensor& gradient, at::Tensor& momentum,
                        const SgdCoefficients& coefficients) {
  const auto g = gradient.add(parameter, coefficients.weight_decay);
  momentum.mul_(coefficients.momentum).add_(g);
  parameter.add_(g.add(momentum, coefficients.lookahead), -coefficients.learning_rate);
}

void sgd_step_fused(at::Tensor& parameter, const at::Tensor& gradient, at::Tensor& momentum,
                    const SgdCoefficients& coefficients) {
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "sgd_step_fused", [&] {
    auto* p = parameter.data_ptr<scalar_t>();
    const auto* g = gradient.data_ptr<scalar_t>();
    auto* m = momentum.data_ptr<scalar_t>();
    at::parallel_for(0, parameter.numel(), kElementsPerTask,
                     [&](std::int64_t begin, std::int64_t end) {
                       step_range(p + begin, g + begin, m + begin, end - begin, coefficients);
                     });
  });
}

Sgd::Sgd(std::vector<NamedTensor> parameters, SgdOptions options)
    : parameters_(std::move(parameters)), options_(options) {
  const at::NoGradGuard no_gradient;
  for (const auto& [name, tensor] : parameters_) {
    momentum_.push_back(at::zeros_like(tensor));
    decays_.push_back(has_weight_decay(options_.implementation, name));
  }
}

SgdCoefficients Sgd::coefficients(std::size_t i, double learning_rate) const {
  const double nesterov = options_.implementation == Implementation::ddp ? options_.momentum : 1.0;
  return {.learning_rate = learning_rate,
          .weight_decay = decays_[i] ? options_.weight_decay : 0.0,
          .momentum = options_.momentum,
          .lookahead = options_.momentum == 0 ? 0.0 : nesterov};
}

void Sgd::step(const std::vector<at::Tensor>& gradients, double learning_rate) {
  if (gradients.size() != parameters_.size())
    throw std::invalid_argument("the optimiser has " + std::to_string(parameters_.size()) +
                                " parameters, but was given " + std::to_string(gradients.size()) +
                                " gradients");
  const at::NoGradGuard no_gradient;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& gradient = gradients[i];
    auto& parameter = parameters_[i].tensor;
    if (!gradient.defined()) continue;
    if (gradient.sizes() != parameter.sizes()) {
      std::ostringstream message;
      message << "the gradient of " << parameters_[i].name << " has shape " << gradient.sizes()
              << ", but the parameter has " << parameter.sizes();
      throw std::invalid_argument(message.str());
    }
    if (options_.fused && same_dense_layout({parameter, gradient, momentum_[i]}))
      sgd_step_fused(parameter, gradient, momentum_[i], coefficients(i, learning_rate));
    else
      sgd_step_reference(parameter, gradient, momentum_[i], coefficients(i, learning_rate));
  }
}

void Sgd::visit_state(StateVisitor& visitor) {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    visit_in_place(visitor, "momentum." + parameters_[i].name, momentum_[i]);
}

}  // namespace psgd
