#pragma once

#include <torch/torch.h>

#include <vector>

#include "compressors/collectives.h"

namespace psgd {

/// A model's buffers as one message. Buffers are small and many (three a BN layer); one broadcast
/// each would cost a latency each.
class FlatBuffers {
 public:
  explicit FlatBuffers(std::vector<torch::Tensor> buffers);

  /// Replaces all buffers by worker `root`'s.
  void broadcast(Collectives& collectives, int root);

 private:
  std::vector<torch::Tensor> buffers_;
  torch::Tensor bytes_;  ///< uint8, on the host: all buffers one behind another
};

}  // namespace psgd
