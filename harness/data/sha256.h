#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace psgd {

/// SHA-256 (FIPS 180-4), in pieces.
class Sha256 {
 public:
  void add(const std::uint8_t* bytes, std::size_t count);
  /// The digest of all that was added, as 64 hexadecimal digits. Ends the object's use.
  std::string hex();

 private:
  void block(const std::uint8_t* bytes);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> rest_{};  ///< what does not fill a block yet
  std::size_t rest_size_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace psgd
