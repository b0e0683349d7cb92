#include "harness/engine/c10d_compat.h"

#include <torch/version.h>

#include <algorithm>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#endif

namespace psgd {
namespace {

#if TORCH_VERSION_MAJOR >= 2
using Base = c10d::Backend;
#else
using Base = c10d::ProcessGroup;
#endif

/// A collective that waits its turn in the queue.
class QueuedWork final : public c10d::Work {
 public:
  void run(const std::function<void()>& collective) {
    try {
      collective();
      finish();
    } catch (...) {
      finish(std::current_exception());
    }
  }
};

class QueuedGroup final : public Base {
 public:
  QueuedGroup(Collectives& collectives, SerialQueue& queue)
      : Base(collectives.worker(), collectives.size()), collectives_(collectives), queue_(queue) {}

  const std::string getBackendName() const override { return "powersgd-bench"; }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return queued([this, tensors, root = static_cast<int>(options.rootRank)]() mutable {
      for (auto& tensor : tensors) collectives_.broadcast(tensor, root, Traffic::check);
    });
  }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    TORCH_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "this process group only sums");
    return queued([this, tensors]() mutable {
      for (auto& tensor : tensors) collectives_.all_reduce(tensor, Traffic::check);
    });
  }

 private:
  c10::intrusive_ptr<c10d::Work> queued(std::function<void()> collective) {
    auto work = c10::make_intrusive<QueuedWork>();
    queue_.put([work, collective = std::move(collective)] { work->run(collective); });
    return work;
  }

  Collectives& collectives_;
  SerialQueue& queue_;
};

}  // namespace

c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(Collectives& collectives,
                                                          SerialQueue& queue) {
  auto group = c10::make_intrusive<QueuedGroup>(collectives, queue);
#if TORCH_VERSION_MAJOR >= 2
  const auto store = c10::make_intrusive<c10d::HashStore>();
  auto wrapper =
      c10::make_intrusive<c10d::ProcessGroup>(store, collectives.worker(), collectives.size());
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA})
    wrapper->setBackend(device, c10d::ProcessGroup::BackendType::CUSTOM,
                        c10::intrusive_ptr<c10d::Backend>(group));
  wrapper->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  return wrapper;
#else
  return group;
#endif
}

BucketAssignment assign_buckets(const std::vector<torch::Tensor>& parameters,
                                const std::vector<std::size_t>& limits) {
  auto [buckets, bucket_limits] = c10d::compute_bucket_assignment_by_size(parameters, limits);
  std::reverse(buckets.begin(), buckets.end());
  std::reverse(bucket_limits.begin(), bucket_limits.end());
  return {std::move(buckets), std::move(bucket_limits)};
}

}  // namespace psgd
