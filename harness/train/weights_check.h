#pragma once

#include <torch/torch.h>

#include <vector>

#include "harness/mpi/mpi_collectives.h"

namespace psgd {

/// A 64-bit hash of the tensors' bits, in order.
std::int64_t hash_bits(const std::vector<torch::Tensor>& tensors);

/// Throws Error, on every worker, unless all hold the same bits: names the workers that differ from
/// the majority, and `when` (e.g. "at epoch 3, batch 50").
void check_same_weights(MpiCollectives& collectives, const std::vector<torch::Tensor>& weights,
                        const std::string& when);

}  // namespace psgd
