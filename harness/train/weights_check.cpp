#include "harness/train/weights_check.h"

#include <algorithm>
#include <cstring>

#include "harness/error.h"

namespace psgd {
namespace {

/// Multiplying by an odd number and a shift are both reversible: any single changed bit changes the
/// hash.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 32U);
}

std::uint64_t hash_bytes(const char* data, std::size_t size, std::uint64_t hash) {
  // Independent lanes, so that the multiplications overlap and the hash goes as fast as memory.
  std::uint64_t lanes[4] = {hash, ~hash, hash + 1, hash + 2};
  std::size_t i = 0;
  for (; i + sizeof lanes <= size; i += sizeof lanes) {
    std::uint64_t words[4];
    std::memcpy(words, data + i, sizeof words);
    for (int lane = 0; lane < 4; ++lane) lanes[lane] = mixed(lanes[lane], words[lane]);
  }
  for (const std::uint64_t lane : lanes) hash = mixed(hash, lane);
  for (; i < size; ++i) hash = mixed(hash, static_cast<unsigned char>(data[i]));
  return mixed(hash, size);
}

}  // namespace

std::int64_t hash_bits(const std::vector<torch::Tensor>& tensors) {
  std::uint64_t hash = 0;
  for (const auto& tensor : tensors) {
    const torch::Tensor host = tensor.detach().cpu().contiguous();
    hash = hash_bytes(static_cast<const char*>(host.data_ptr()), host.numel() * host.element_size(),
                      hash);
  }
  return static_cast<std::int64_t>(hash);
}

void check_same_weights(MpiCollectives& collectives, const std::vector<torch::Tensor>& weights,
                        const std::string& when) {
  const at::Tensor mine = at::full({1}, hash_bits(weights), at::kLong);
  at::Tensor gathered = at::empty({collectives.size()}, at::kLong);
  collectives.all_gather(mine, gathered, Traffic::check);
  const std::vector<std::int64_t> all(gathered.data_ptr<std::int64_t>(),
                                      gathered.data_ptr<std::int64_t>() + collectives.size());
  const auto votes = [&](std::int64_t hash) { return std::count(all.begin(), all.end(), hash); };
  const auto majority = *std::max_element(all.begin(), all.end(),
                                          [&](auto a, auto b) { return votes(a) < votes(b); });
  std::string different;
  for (std::size_t worker = 0; worker < all.size(); ++worker)
    if (all[worker] != majority)
      different += (different.empty() ? "" : ", ") + std::to_string(worker);
  if (!different.empty())
    throw Error("the workers' weights are no longer the same " + when + ": worker " + different +
                " differs from the majority; results from here on would mean nothing");
}

}  // namespace psgd
