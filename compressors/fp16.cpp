#include "compressors/fp16.h"

#include "compressors/elementwise.h"
#include "compressors/half_conversion.h"

namespace psgd {

void Fp16::reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) {
  const std::int64_t elements = total_elements(bucket.gradients);
  if (elements == 0) return;
  at::Tensor& half = buffer(bucket, elements);
  const bool in_one_piece = bucket.flat.defined();
  {
    const auto timed = clock.scope(Phase::encode);
    std::int64_t offset = 0;
    if (in_one_piece) flushed_ += to_half_divided(bucket.flat, collectives.size(), half, 0);
    for (std::size_t i = 0; !in_one_piece && i < bucket.gradients.size(); ++i) {
      flushed_ += to_half_divided(bucket.gradients[i], collectives.size(), half, offset);
      offset += bucket.gradients[i].numel();
    }
  }
  {
    const auto timed = clock.scope(Phase::collective_gradients);
    collectives.all_reduce(half, Traffic::gradient);
  }
  const auto timed = clock.scope(Phase::decode);
  std::int64_t offset = 0;
  if (in_one_piece) from_half(half, 0, bucket.flat);
  for (std::size_t i = 0; !in_one_piece && i < bucket.gradients.size(); ++i) {
    from_half(half, offset, bucket.gradients[i]);
    offset += bucket.gradients[i].numel();
  }
}

at::Tensor& Fp16::buffer(const Bucket& bucket, std::int64_t elements) {
  const auto index = static_cast<std::size_t>(bucket.index);
  if (buffers_.size() <= index) buffers_.resize(index + 1);
  at::Tensor& half = buffers_[index];
  const at::Tensor& like = bucket.gradients.front();
  // DDP rebuilds its buckets once, so a bucket's size may change.
  if (!half.defined() || half.numel() != elements || half.device() != like.device())
    half = at::empty({elements}, like.options().dtype(at::kHalf));
  return half;
}

namespace {

const RegisterScheme ddp({"fp16",
                          Implementation::ddp,
                          "all elements in half precision, one all-reduce",
                          {},
                          [](const OptionValues&) { return std::string("FP16"); },
                          [](const OptionValues&) { return std::make_unique<Fp16>(); }});

}  // namespace
}  // namespace psgd
