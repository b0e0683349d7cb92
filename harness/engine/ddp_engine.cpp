#include <limits>

#include "harness/engine/c10d_compat.h"
#include "harness/engine/device_sync.h"
#include "harness/engine/engine.h"
#include "harness/engine/flat_buffers.h"
#include "harness/engine/serial_queue.h"

namespace psgd {
namespace {

/// Runs the scheme on each bucket in the queue's thread, in the order in which the Reducer hands
/// buckets over.
class SchemeHook final : public c10d::CommHookInterface {
 public:
  SchemeHook(Scheme& scheme, Collectives& collectives, SerialQueue& queue)
      : scheme_(scheme), collectives_(collectives), queue_(queue) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& grad_bucket) override {
    last_handed_over_ = PhaseClock::now();
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
    Bucket bucket{grad_bucket.getGradients(), grad_bucket.getBuffer(),
                  static_cast<int>(grad_bucket.getIndex()), grad_bucket.isLast()};
    if (rehearsing) {
      future->markCompleted(bucket.flat);
      return future;
    }
    synchronise(bucket.flat.device());  // gradients computed on a GPU must be there before another
                                        // thread reads them
    queue_.put([this, future, bucket = std::move(bucket)]() mutable { reduce(bucket, *future); });
    return future;
  }

  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

  /// While true, buckets go back as they came and nothing is sent.
  bool rehearsing = false;

  /// When the step's latest bucket was handed over.
  PhaseClock::Nanoseconds last_handed_over() const { return last_handed_over_; }
  /// Busy time of the hook by phase; read only while the queue is idle.
  PhaseClock& clock() { return clock_; }

 private:
  void reduce(Bucket& bucket, c10::ivalue::Future& future) {
    try {
      const auto scope = clock_.scope(Phase::reduce);
      const torch::NoGradGuard no_grad;
      scheme_.reduce(bucket, collectives_, clock_);
      synchronise(bucket.flat.device());
    } catch (...) {
      future.setError(std::current_exception());
      return;
    }
    future.markCompleted(bucket.flat);
  }

  Scheme& scheme_;
  Collectives& collectives_;
  SerialQueue& queue_;
  PhaseClock clock_;
  PhaseClock::Nanoseconds last_handed_over_ = 0;
};

/// DistributedDataParallel's forward and backward around LibTorch's Reducer.
class DdpEngine final : public Engine {
 public:
  DdpEngine(EngineParts parts, const DdpOptions& options)
      : parts_(std::move(parts)),
        buffers_(parts_.buffers),
        find_unused_(options.find_unused_parameters) {
    const auto bytes = [](double mib) { return static_cast<std::size_t>(mib * 1024 * 1024); };
    const std::size_t cap = bytes(options.bucket_mib);
    // As DistributedDataParallel does: without a search for unused parameters buckets are built
    // anew after the first backward pass, so the first pass takes a single one.
    const std::vector<std::size_t> limits =
        find_unused_ ? std::vector<std::size_t>{bytes(options.first_bucket_mib), cap}
                     : std::vector<std::size_t>{std::numeric_limits<int>::max()};
    auto buckets = assign_buckets(parts_.parameters, limits);
    reducer_ = std::make_shared<c10d::Reducer>(
        parts_.parameters, std::move(buckets.parameters), std::move(buckets.limits),
        make_process_group(parts_.collectives, queue_),
        std::vector<bool>(parts_.parameters.size(), false), static_cast<std::int64_t>(cap),
        find_unused_, options.gradient_as_bucket_view,
        std::unordered_map<std::size_t, std::string>{},
        static_cast<std::int64_t>(bytes(options.first_bucket_mib)));
    auto hook = std::make_unique<SchemeHook>(parts_.scheme, parts_.collectives, queue_);
    hook_ = hook.get();
    reducer_->register_comm_hook(std::move(hook));
  }

  BatchResult forward_backward(const torch::Tensor& images, const torch::Tensor& labels,
                               PhaseClock& clock) override {
    for (auto& parameter : parts_.parameters) parameter.mutable_grad() = torch::Tensor();
    reducer_->prepare_for_forward();
    reducer_->rebuild_buckets();
    broadcast_buffers(clock);
    torch::Tensor logits;
    torch::Tensor loss;
    {
      const auto scope = clock.scope(Phase::forward);
      logits = parts_.forward(images);
      loss = torch::nn::functional::cross_entropy(logits, labels);
      synchronise(images.device());
    }
    {
      const auto scope = clock.scope(Phase::backward);
      hook_->clock().reset();
      prepare_for_backward(loss);
      loss.backward();
      clock.add(Phase::wait, PhaseClock::now() - hook_->last_handed_over());
      synchronise(images.device());
    }
    queue_.drain();
    for (std::size_t phase = 0; phase < kPhases; ++phase)
      clock.add(static_cast<Phase>(phase), hook_->clock().sums()[phase]);
    return {loss.detach(), logits.detach()};
  }

  void rehearse(const torch::Tensor& images, const torch::Tensor& labels) override {
    hook_->rehearsing = true;
    reducer_->prepare_for_forward();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(parts_.forward(images), labels);
    prepare_for_backward(loss);
    loss.backward();
    queue_.drain();
    hook_->rehearsing = false;
  }

  void prepare_test() override { buffers_.broadcast(parts_.collectives, 0); }

 private:
  /// The Reducer walks the graph from the outputs only when it is to look for unused parameters.
  void prepare_for_backward(const torch::Tensor& loss) {
    reducer_->prepare_for_backward(find_unused_ ? std::vector<torch::Tensor>{loss}
                                                : std::vector<torch::Tensor>{});
  }

  /// DistributedDataParallel's broadcast_buffers: worker 0's BN statistics go to all before each
  /// forward pass.
  void broadcast_buffers(PhaseClock& clock) {
    const auto scope = clock.scope(Phase::buffers);
    buffers_.broadcast(parts_.collectives, 0);
  }

  EngineParts parts_;
  FlatBuffers buffers_;
  bool find_unused_;
  SerialQueue queue_;  // outlives the reducer, which outlives nothing that the queue's tasks hold
  std::shared_ptr<c10d::Reducer> reducer_;
  SchemeHook* hook_ = nullptr;
};

}  // namespace

std::unique_ptr<Engine> make_ddp_engine(EngineParts parts, const DdpOptions& options) {
  return std::make_unique<DdpEngine>(std::move(parts), options);
}

}  // namespace psgd
