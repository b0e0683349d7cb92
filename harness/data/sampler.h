#pragma once

#include <cstdint>
#include <vector>

namespace psgd {

/// The order of epoch `epoch` (from 0): torch.randperm(count) of a generator seeded with `epoch`,
/// the same numbers as in Python.
std::vector<std::int64_t> epoch_order(std::int64_t count, int epoch);

/// Worker `worker`'s share of `order`, as torch.utils.data.DistributedSampler deals it: padded by
/// its own start to a multiple of `workers`, then every `workers`-th sample from the worker's
/// number on. An empty order gives an empty share. Throws std::invalid_argument unless 0 <= worker
/// < workers.
std::vector<std::int64_t> shard(const std::vector<std::int64_t>& order, int worker, int workers);

/// The same for 0 .. count - 1 in order and without padding, for testing: each sample exactly once.
std::vector<std::int64_t> test_shard(std::int64_t count, int worker, int workers);

/// The length of shard() for an order of `count`.
std::int64_t shard_size(std::int64_t count, int workers);

}  // namespace psgd
