#include "harness/engine/engine.h"

#include "harness/engine/bucket_layout.h"
#include "harness/engine/device_sync.h"

namespace psgd {
namespace {

/// The paper's loop: backward, then one reduce() over the whole gradient list.
class PaperEngine final : public Engine {
 public:
  explicit PaperEngine(EngineParts parts) : parts_(std::move(parts)) { place_gradients(); }

  BatchResult forward_backward(const torch::Tensor& images, const torch::Tensor& labels,
                               PhaseClock& clock) override {
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
      bucket_.flat.zero_();
      loss.backward();
      keep_placed();
      synchronise(images.device());
    }
    {
      const auto scope = clock.scope(Phase::reduce);
      const torch::NoGradGuard no_grad;
      parts_.scheme.reduce(bucket_, parts_.collectives, clock);
      synchronise(images.device());
    }
    return {loss.detach(), logits.detach()};
  }

 private:
  void place_gradients() {
    bucket_ = lay_out_bucket(parts_.parameters, matrices_first(parts_.parameters));
    for (std::size_t i = 0; i < parts_.parameters.size(); ++i)
      parts_.parameters[i].mutable_grad() = bucket_.gradients[i];
  }

  /// Autograd adds into a gradient that is there; should it ever put another tensor in its place,
  /// the values are taken over, not lost.
  void keep_placed() {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parts_.parameters.size(); ++i) {
      auto& gradient = parts_.parameters[i].mutable_grad();
      if (gradient.defined() && gradient.data_ptr() == bucket_.gradients[i].data_ptr()) continue;
      if (gradient.defined()) bucket_.gradients[i].copy_(gradient);
      gradient = bucket_.gradients[i];
    }
  }

  EngineParts parts_;
  Bucket bucket_;
};

}  // namespace

std::unique_ptr<Engine> make_paper_engine(EngineParts parts) {
  return std::make_unique<PaperEngine>(std::move(parts));
}

}  // namespace psgd
