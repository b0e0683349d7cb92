#include "harness/train/score.h"

#include <algorithm>

namespace psgd {

void Score::add(const torch::Tensor& logits, const torch::Tensor& labels, double mean_loss) {
  const torch::NoGradGuard no_grad;
  const auto images = labels.size(0);
  const auto top = std::get<1>(logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1));
  const auto hits = top.eq(labels.view({images, 1}));
  correct += hits.narrow(1, 0, 1).sum().item<std::int64_t>();
  correct_top5 += hits.sum().item<std::int64_t>();
  loss += mean_loss * static_cast<double>(images);
  count += images;
}

void Score::all_reduce(Collectives& collectives) {
  at::Tensor counts = at::tensor({correct, correct_top5, count}, at::kLong);
  at::Tensor losses = at::tensor({loss}, at::kDouble);
  collectives.all_reduce(counts, Traffic::metric);
  collectives.all_reduce(losses, Traffic::metric);
  correct = counts[0].item<std::int64_t>();
  correct_top5 = counts[1].item<std::int64_t>();
  count = counts[2].item<std::int64_t>();
  loss = losses[0].item<double>();
}

}  // namespace psgd
