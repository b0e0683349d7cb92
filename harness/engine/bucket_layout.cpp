#include "harness/engine/bucket_layout.h"

#include <algorithm>
#include <numeric>

#include "harness/engine/c10d_compat.h"

namespace psgd {

Bucket lay_out_bucket(const std::vector<torch::Tensor>& parameters,
                      const std::vector<std::size_t>& order) {
  std::int64_t elements = 0;
  for (const auto& parameter : parameters) elements += parameter.numel();
  Bucket bucket;
  bucket.flat = torch::zeros({elements}, parameters.front().options().requires_grad(false));
  bucket.gradients.resize(parameters.size());
  std::int64_t offset = 0;
  for (const std::size_t i : order) {
    bucket.gradients[i] =
        bucket.flat.narrow(0, offset, parameters[i].numel()).view(parameters[i].sizes());
    offset += parameters[i].numel();
  }
  return bucket;
}

std::vector<std::size_t> matrices_first(const std::vector<torch::Tensor>& parameters) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return parameters[i].dim() > 1; });
  return order;
}

std::vector<Bucket> lay_out_buckets(const Options& options,
                                    const std::vector<torch::Tensor>& parameters) {
  if (implementation_from(options.implementation) == Implementation::paper)
    return {lay_out_bucket(parameters, matrices_first(parameters))};
  const std::vector<torch::Tensor> arrival(parameters.rbegin(), parameters.rend());
  const auto bytes = [](double mib) { return static_cast<std::size_t>(mib * 1024 * 1024); };
  auto assignment =
      assign_buckets(arrival, {bytes(options.first_bucket_mib), bytes(options.bucket_mib)});
  std::reverse(assignment.parameters.begin(),
               assignment.parameters.end());  // here in order of arrival already
  std::vector<Bucket> buckets;
  for (const auto& numbers : assignment.parameters) {
    std::vector<torch::Tensor> members;
    for (const std::size_t number : numbers) members.push_back(arrival[number]);
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    buckets.push_back(lay_out_bucket(members, order));
    buckets.back().index = static_cast<int>(buckets.size()) - 1;
    buckets.back().is_last = buckets.size() == assignment.parameters.size();
  }
  return buckets;
}

}  // namespace psgd
