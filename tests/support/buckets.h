#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "compressors/scheme.h"

namespace psgd::test {

using Shapes = std::vector<std::vector<std::int64_t>>;

/// A bucket of uninitialised gradients in one piece of memory, with its flat view.
inline Bucket flat_bucket(const Shapes& shapes, at::ScalarType type = at::kFloat) {
  std::int64_t total = 0;
  for (const auto& shape : shapes) {
    std::int64_t size = 1;
    for (const auto extent : shape) size *= extent;
    total += size;
  }
  Bucket bucket;
  bucket.flat = at::empty({total}, at::TensorOptions().dtype(type));
  std::int64_t offset = 0;
  for (const auto& shape : shapes) {
    std::int64_t size = 1;
    for (const auto extent : shape) size *= extent;
    bucket.gradients.push_back(bucket.flat.narrow(0, offset, size).view(shape));
    offset += size;
  }
  return bucket;
}

/// The same, each gradient with memory of its own and no flat view.
inline Bucket separate_bucket(const Shapes& shapes, at::ScalarType type = at::kFloat) {
  Bucket bucket;
  for (const auto& shape : shapes)
    bucket.gradients.push_back(at::empty(shape, at::TensorOptions().dtype(type)));
  return bucket;
}

}  // namespace psgd::test
