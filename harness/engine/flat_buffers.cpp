#include "harness/engine/flat_buffers.h"

#include <cstring>

namespace psgd {

FlatBuffers::FlatBuffers(std::vector<torch::Tensor> buffers) : buffers_(std::move(buffers)) {
  std::int64_t size = 0;
  for (const auto& buffer : buffers_) size += buffer.numel() * buffer.element_size();
  bytes_ = torch::empty({size}, torch::kUInt8);
}

void FlatBuffers::broadcast(Collectives& collectives, int root) {
  if (bytes_.numel() == 0 || collectives.size() == 1) return;
  const torch::NoGradGuard no_grad;
  auto* place = bytes_.data_ptr<std::uint8_t>();
  const bool sends = collectives.worker() == root;
  if (sends) {
    for (const auto& buffer : buffers_) {
      const torch::Tensor host = buffer.cpu().contiguous();
      const std::size_t size = host.numel() * host.element_size();
      std::memcpy(place, host.data_ptr(), size);
      place += size;
    }
  }
  collectives.broadcast(bytes_, root, Traffic::buffer);
  if (sends) return;
  for (auto& buffer : buffers_) {
    const std::size_t size = buffer.numel() * buffer.element_size();
    const torch::Tensor host =
        torch::from_blob(place, buffer.sizes(), buffer.options().device(torch::kCPU));
    buffer.copy_(host);
    place += size;
  }
}

}  // namespace psgd
