#pragma once

#include <torch/torch.h>

#include <vector>

#include "compressors/scheme.h"
#include "harness/config/options.h"

namespace psgd {

/// Zeroed gradients for `parameters` in the buckets in which the options' implementation reduces
/// them: Paper, one; PyTorch DDP, as its Reducer forms them once it knows the order in which
/// gradients arrive, taken here as the reverse of the parameters' order.
std::vector<Bucket> lay_out_buckets(const Options& options,
                                    const std::vector<torch::Tensor>& parameters);

/// One bucket of gradients in one piece of memory, in the order given by `order` (numbers of
/// parameters); the bucket's gradients are in the order of `parameters`.
Bucket lay_out_bucket(const std::vector<torch::Tensor>& parameters,
                      const std::vector<std::size_t>& order);

/// The paper's memory order: matrices first, then vectors, so that the whole list and the vectors
/// each are one buffer for a collective, without a copy.
std::vector<std::size_t> matrices_first(const std::vector<torch::Tensor>& parameters);

}  // namespace psgd
