#pragma once

#include <array>
#include <cstdint>

#include "harness/data/dataset.h"

namespace psgd {

constexpr int kPadding = 4;

/// What to take from an image padded by 4 black pixels on each side: 32 rows and columns from these
/// offsets (0 to 8; 4 is the image itself), then mirrored left to right if `flip`.
struct Crop {
  int top = kPadding;
  int left = kPadding;
  bool flip = false;
};

/// The crop of the sample at `position` in the epoch's order over all workers (w, w + n, w + 2n,
/// ... for worker w). Depends on nothing else: not on the scheme, the timing of threads or where a
/// run was resumed, and the joined batch of k workers is augmented as one worker would.
Crop random_crop(std::uint64_t seed, std::int64_t epoch, std::int64_t position);

/// (v / 255 - mean) / std_deviation for each channel and byte v, rounded at each step in type T, as
/// torchvision's ToTensor and Normalize do.
template <typename T>
using NormalisationTable = std::array<std::array<T, 256>, kChannels>;
template <typename T>
NormalisationTable<T> normalisation_table(const Dataset& dataset);

/// Writes image i, cropped and normalised, to 3 * 32 * 32 elements from `output`: planes (NCHW), or
/// with `channels_last` the three channels of a pixel side by side (NHWC). Padding is black before
/// normalisation, as with RandomCrop(32, padding=4) followed by ToTensor and Normalize.
template <typename T>
void write_image(const Images& images, std::int64_t i, const Crop& crop,
                 const NormalisationTable<T>& table, bool channels_last, T* output);

}  // namespace psgd
