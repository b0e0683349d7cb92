#include "models/add_relu.h"

namespace psgd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

class AddRelu : public torch::autograd::Function<AddRelu> {
 public:
  static torch::Tensor forward(AutogradContext* context, torch::Tensor sum, torch::Tensor addend) {
    // ATen has the fused kernel for the CPU only.
    if (sum.is_cpu() && sum.strides() == addend.strides())
      at::_add_relu_(sum, addend);
    else
      sum.add_(addend).relu_();
    context->mark_dirty({sum});
    context->save_for_backward({sum});
    return sum;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const auto result = context->get_saved_variables()[0];
    // The gradient of a sum is the same for both terms, so both share one tensor.
    auto gradient = at::threshold_backward(gradients[0], result, 0);
    return {gradient, gradient};
  }
};

}  // namespace

torch::Tensor add_relu_(torch::Tensor sum, const torch::Tensor& addend) {
  return AddRelu::apply(std::move(sum), addend);
}

}  // namespace psgd
