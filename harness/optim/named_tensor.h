#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "compressors/scheme.h"

namespace psgd {

/// A parameter or buffer of a model, under its name there. Shares the model's memory.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// The model's parameters, in registration order.
std::vector<NamedTensor> named_parameters(const torch::nn::Module& model);

/// The model's parameters, then the running mean and variance of each batch norm. Left out: batch
/// norm's counters, which no forward pass reads and of which a mean would mean nothing.
std::vector<NamedTensor> named_weights_and_buffers(const torch::nn::Module& model);

/// Shows `value` to `visitor` under `key`. What a loading visitor puts in its place is copied into
/// the memory that `value` has, so views of it stay valid. Throws std::invalid_argument, naming the
/// key and both sides, where shape or type differ.
void visit_in_place(StateVisitor& visitor, const std::string& key, at::Tensor& value);

/// Elements that a thread takes at a time in a loop over a tensor.
constexpr std::int64_t kElementsPerTask = 1 << 15;

/// Whether all are on the CPU, of one type (float32 or float64), one shape and one dense memory
/// layout, so that a plain loop over their memory meets equal elements at equal places.
bool same_dense_layout(at::ArrayRef<at::Tensor> tensors);

}  // namespace psgd
