#pragma once

#include <torch/torch.h>

#include <string>

namespace psgd {

/// The GPU that a host's `local_worker`-th worker uses among `devices`: one each where there are
/// enough, else shared evenly. -1 where there are none.
int device_index(int local_worker, int devices);

/// The device for "cpu", "cuda" or "auto" (cuda where there is one). Throws UsageError for "cuda"
/// without a GPU.
torch::Device choose_device(const std::string& wanted, int local_worker);

}  // namespace psgd
