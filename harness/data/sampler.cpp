#include "harness/data/sampler.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>
#include <string>

namespace psgd {
namespace {

void check_worker(int worker, int workers) {
  if (worker < 0 || worker >= workers)
    throw std::invalid_argument("worker " + std::to_string(worker) + " of " +
                                std::to_string(workers) + " does not exist; workers count from 0");
}

}  // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, int epoch) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(epoch));
  const auto order = at::randperm(count, generator, at::TensorOptions().dtype(at::kLong));
  const auto* first = order.data_ptr<std::int64_t>();
  return {first, first + count};
}

std::int64_t shard_size(std::int64_t count, int workers) { return (count + workers - 1) / workers; }

std::vector<std::int64_t> shard(const std::vector<std::int64_t>& order, int worker, int workers) {
  check_worker(worker, workers);
  const auto count = static_cast<std::int64_t>(order.size());
  std::vector<std::int64_t> mine;
  for (std::int64_t i = 0; i < shard_size(count, workers); ++i)
    mine.push_back(order[static_cast<std::size_t>((worker + i * workers) % count)]);
  return mine;
}

std::vector<std::int64_t> test_shard(std::int64_t count, int worker, int workers) {
  check_worker(worker, workers);
  std::vector<std::int64_t> mine;
  for (std::int64_t i = worker; i < count; i += workers) mine.push_back(i);
  return mine;
}

}  // namespace psgd
