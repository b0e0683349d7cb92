#pragma once

#include <cstdint>
#include <filesystem>

namespace psgd {

/// A file's bytes, mapped read-only. Processes that map the same file share its memory. The file must not
/// be cut while it is mapped: reading beyond its new end kills the process (SIGBUS).
class MappedFile {
 public:
  /// Throws DataError, with the reason, if `path` is missing, no regular file or not readable.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(address_); }
  std::size_t size() const { return size_; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace psgd
