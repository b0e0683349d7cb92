#include "compressors/full_precision.h"

#include "compressors/elementwise.h"

namespace psgd {

void FullPrecision::reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) {
  if (bucket.flat.defined()) {
    reduce_flat(bucket.flat, collectives, clock);
    return;
  }
  if (total_elements(bucket.gradients) == 0) return;
  at::Tensor& flat = buffer(bucket);
  {
    const auto timed = clock.scope(Phase::encode);
    pack(bucket.gradients, flat);
  }
  reduce_flat(flat, collectives, clock);
  const auto timed = clock.scope(Phase::decode);
  unpack(flat, bucket.gradients);
}

void FullPrecision::reduce_flat(at::Tensor& flat, Collectives& collectives, PhaseClock& clock) {
  if (flat.numel() == 0) return;
  if (implementation_ == Implementation::ddp) {
    const auto timed = clock.scope(Phase::encode);
    divide(flat, collectives.size());
  }
  {
    const auto timed = clock.scope(Phase::collective_gradients);
    collectives.all_reduce(flat, Traffic::gradient);
  }
  if (implementation_ == Implementation::paper) {
    const auto timed = clock.scope(Phase::decode);
    divide(flat, collectives.size());
  }
}

at::Tensor& FullPrecision::buffer(const Bucket& bucket) {
  const auto index = static_cast<std::size_t>(bucket.index);
  if (buffers_.size() <= index) buffers_.resize(index + 1);
  const std::int64_t elements = total_elements(bucket.gradients);
  const at::Tensor& like = bucket.gradients.front();
  at::Tensor& flat = buffers_[index];
  // DDP rebuilds its buckets once, so a bucket's size and type may change.
  if (!flat.defined() || flat.numel() != elements || flat.scalar_type() != like.scalar_type() ||
      flat.device() != like.device())
    flat = at::empty({elements}, like.options());
  return flat;
}

namespace {

SchemeEntry entry(Implementation implementation) {
  return {"full-precision",
          implementation,
          "all elements as they are, one all-reduce",
          {},
          [](const OptionValues&) { return std::string("full precision"); },
          [implementation](const OptionValues&) {
            return std::make_unique<FullPrecision>(implementation);
          }};
}

const RegisterScheme ddp(entry(Implementation::ddp));
const RegisterScheme paper(entry(Implementation::paper));

}  // namespace
}  // namespace psgd
