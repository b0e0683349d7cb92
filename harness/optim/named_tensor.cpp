#include "harness/optim/named_tensor.h"

#include <sstream>
#include <stdexcept>

namespace psgd {
namespace {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes();
  return text.str();
}

}  // namespace

std::vector<NamedTensor> named_parameters(const torch::nn::Module& model) {
  std::vector<NamedTensor> found;
  for (const auto& item : model.named_parameters()) found.push_back({item.key(), item.value()});
  return found;
}

std::vector<NamedTensor> named_weights_and_buffers(const torch::nn::Module& model) {
  auto found = named_parameters(model);
  // By name, not by type: LibTorch's to(float64) converts batch norm's integer counters too.
  for (const auto& item : model.named_buffers())
    if (!item.key().ends_with("num_batches_tracked")) found.push_back({item.key(), item.value()});
  return found;
}

void visit_in_place(StateVisitor& visitor, const std::string& key, at::Tensor& value) {
  at::Tensor shown = value;
  visitor.tensor(key, shown);
  if (shown.is_same(value)) return;
  if (!shown.defined() || shown.sizes() != value.sizes() ||
      shown.scalar_type() != value.scalar_type())
    throw std::invalid_argument("state '" + key + "' should be " + describe(value) +
                                ", but the checkpoint has " + describe(shown));
  const at::NoGradGuard no_gradient;
  value.copy_(shown);
}

bool same_dense_layout(at::ArrayRef<at::Tensor> tensors) {
  const auto& first = tensors[0];
  const auto type = first.scalar_type();
  if (type != at::kFloat && type != at::kDouble) return false;
  for (const auto& tensor : tensors)
    if (!tensor.is_cpu() || tensor.scalar_type() != type || tensor.sizes() != first.sizes() ||
        tensor.strides() != first.strides() || !tensor.is_non_overlapping_and_dense())
      return false;
  return true;
}

}  // namespace psgd
