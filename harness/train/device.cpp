#include "harness/train/device.h"

#include "harness/error.h"
#include "harness/mpi/session.h"

namespace psgd {

int device_index(int local_worker, int devices) {
  return devices <= 0 ? -1 : local_worker % devices;
}

torch::Device choose_device(const std::string& wanted, int local_worker) {
  const int devices = wanted == "cpu" ? 0 : static_cast<int>(torch::cuda::device_count());
  const int index = device_index(local_worker, devices);
  if (index >= 0) return {torch::kCUDA, static_cast<torch::DeviceIndex>(index)};
  if (wanted == "cuda")
    throw UsageError("device is 'cuda', but LibTorch finds no GPU on " + host_name() +
                     "; set device to auto or cpu, or use a LibTorch built with CUDA");
  return torch::kCPU;
}

}  // namespace psgd
