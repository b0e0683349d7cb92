#include "harness/data/augment.h"

#include <algorithm>

#include "harness/data/counter_random.h"

namespace psgd {
namespace {

/// The part of a cropped row or column that lies in the image; the rest is padding.
struct Span {
  int begin;  ///< in the crop
  int end;
  int shift;  ///< place in the image = place in the crop + shift
};

Span inside(int offset) {
  const int shift = offset - kPadding;
  return {std::max(0, -shift), std::min(kImageSide, kImageSide - shift), shift};
}

/// One row of one channel; `step` elements lie between neighbours (1 or 3), negative when mirrored.
template <typename T, int kStep>
void write_row(const std::uint8_t* __restrict source, const Span& columns,
               const T* __restrict table, T* __restrict output) {
  const T black = table[0];
  for (int x = 0; x < columns.begin; ++x) output[x * kStep] = black;
  for (int x = columns.begin; x < columns.end; ++x)
    output[x * kStep] = table[source[x + columns.shift]];
  for (int x = columns.end; x < kImageSide; ++x) output[x * kStep] = black;
}

template <typename T, int kPixelStride>
void write_channel(const std::uint8_t* plane, const Crop& crop, const T* table, T* output) {
  const auto rows = inside(crop.top);
  const auto columns = inside(crop.left);
  for (int y = 0; y < kImageSide; ++y) {
    T* row = output + y * kImageSide * kPixelStride;
    if (y < rows.begin || y >= rows.end) {
      for (int x = 0; x < kImageSide; ++x) row[x * kPixelStride] = table[0];
      continue;
    }
    const auto* source = plane + (y + rows.shift) * kImageSide;
    if (crop.flip)
      write_row<T, -kPixelStride>(source, columns, table, row + (kImageSide - 1) * kPixelStride);
    else
      write_row<T, kPixelStride>(source, columns, table, row);
  }
}

}  // namespace

Crop random_crop(std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  const auto bits =
      random_bits(seed, static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(position));
  // 24 bits scaled to 0 .. 8: each offset is as likely as another to 1 in 10^6.
  const auto offset = [](std::uint64_t part) {
    return static_cast<int>((part & 0xffffff) * (2 * kPadding + 1) >> 24);
  };
  return {.top = offset(bits), .left = offset(bits >> 24), .flip = (bits >> 63) != 0};
}

template <typename T>
NormalisationTable<T> normalisation_table(const Dataset& dataset) {
  NormalisationTable<T> table;
  for (std::size_t channel = 0; channel < kChannels; ++channel)
    for (std::size_t v = 0; v < 256; ++v)
      table[channel][v] = (static_cast<T>(v) / T{255} - static_cast<T>(dataset.mean[channel])) /
                          static_cast<T>(dataset.std_deviation[channel]);
  return table;
}

template <typename T>
void write_image(const Images& images, std::int64_t i, const Crop& crop,
                 const NormalisationTable<T>& table, bool channels_last, T* output) {
  for (int channel = 0; channel < kChannels; ++channel) {
    const auto* plane = images.plane(i, channel);
    const T* values = table[static_cast<std::size_t>(channel)].data();
    if (channels_last)
      write_channel<T, kChannels>(plane, crop, values, output + channel);
    else
      write_channel<T, 1>(plane, crop, values, output + channel * kPlanePixels);
  }
}

template NormalisationTable<float> normalisation_table<float>(const Dataset&);
template NormalisationTable<double> normalisation_table<double>(const Dataset&);
template void write_image<float>(const Images&, std::int64_t, const Crop&,
                                 const NormalisationTable<float>&, bool, float*);
template void write_image<double>(const Images&, std::int64_t, const Crop&,
                                  const NormalisationTable<double>&, bool, double*);

}  // namespace psgd
