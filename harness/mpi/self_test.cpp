#include <ATen/ATen.h>

#include <algorithm>

#include "harness/error.h"
#include "harness/mpi/mpi_collectives.h"

namespace psgd {
namespace {

/// Small whole numbers that differ between elements and workers, so that a swapped or dropped one
/// shows; small enough for exact sums even in half precision, which holds whole numbers up to 2048.
at::Tensor values_of(int worker, int workers, std::int64_t elements, at::ScalarType type) {
  const int below = std::clamp(2048 / workers, 2, 32);
  return at::arange(elements, at::kLong).mul(7).add(13 * worker).remainder(below).to(type);
}

at::Tensor expected_sum(int workers, std::int64_t elements, at::ScalarType type) {
  at::Tensor sum = at::zeros({elements}, at::kDouble);
  for (int worker = 0; worker < workers; ++worker)
    sum += values_of(worker, workers, elements, at::kDouble);
  return sum.to(type);
}

void compare(const at::Tensor& found, const at::Tensor& expected, const char* collective,
             int worker) {
  const at::Tensor wrong = found.to(at::kDouble).ne(expected.to(at::kDouble)).nonzero();
  if (wrong.numel() == 0) return;
  const auto element = wrong.flatten()[0].item<std::int64_t>();
  throw Error(
      std::string("self-test of the collectives: ") + collective + " of " +
      std::to_string(found.numel()) + " elements of type " + c10::toString(found.scalar_type()) +
      " gave " + std::to_string(found[element].item<double>()) + " instead of " +
      std::to_string(expected[element].item<double>()) + " in element " + std::to_string(element) +
      " on worker " + std::to_string(worker) + ": this MPI installation cannot be trusted");
}

}  // namespace

void MpiCollectives::self_test() {
  const auto kept = counts_;
  // Around 1, the number of workers, 10 KB and 1 MB: there Open MPI changes between algorithms.
  const std::initializer_list<std::int64_t> sizes = {1, size_ + 1, 4099, 262147};
  for (const std::int64_t elements : sizes) {
    for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kLong}) {
      at::Tensor values = values_of(worker_, size_, elements, type);
      all_reduce(values, Traffic::check);
      compare(values, expected_sum(size_, elements, type), "all-reduce", worker_);
      values = values_of(worker_, size_, elements, type);
      start_all_reduce(values, Traffic::check)->wait();
      compare(values, expected_sum(size_, elements, type), "non-blocking all-reduce", worker_);
    }
    const int root = size_ - 1;
    at::Tensor values = values_of(worker_, size_, elements, at::kFloat);
    broadcast(values, root, Traffic::check);
    compare(values, values_of(root, size_, elements, at::kFloat), "broadcast", worker_);
    if (elements > 10000) continue;
    at::Tensor received = at::empty({size_ * elements}, at::kFloat);
    all_gather(values_of(worker_, size_, elements, at::kFloat), received, Traffic::check);
    for (int from = 0; from < size_; ++from)
      compare(received.narrow(0, from * elements, elements),
              values_of(from, size_, elements, at::kFloat), "all-gather", worker_);
  }
  counts_ = kept;
}

}  // namespace psgd
