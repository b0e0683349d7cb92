#pragma once

#include <cstdint>
#include <vector>

namespace psgd::test {

/// The shapes of ResNet-18's 62 parameters for 32 x 32 images, in registration order.
inline std::vector<std::vector<std::int64_t>> resnet18_shapes(std::int64_t width = 64,
                                                              std::int64_t classes = 10) {
  std::vector<std::vector<std::int64_t>> shapes;
  const auto batch_norm = [&](std::int64_t channels) {
    shapes.insert(shapes.end(), 2, {channels});
  };
  shapes.push_back({width, 3, 3, 3});
  batch_norm(width);
  std::int64_t in = width;
  for (const std::int64_t out : {width, 2 * width, 4 * width, 8 * width}) {
    for (int block = 0; block < 2; ++block) {
      shapes.push_back({out, in, 3, 3});
      batch_norm(out);
      shapes.push_back({out, out, 3, 3});
      batch_norm(out);
      if (in != out) {
        shapes.push_back({out, in, 1, 1});
        batch_norm(out);
      }
      in = out;
    }
  }
  shapes.push_back({classes, in});
  shapes.push_back({classes});
  return shapes;
}

}  // namespace psgd::test
