#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

namespace psgd {

/// A file's bytes, mapped read-only. Processes that map the same file share its memory.
///
/// Should the file be cut while it is mapped, or its disk fail, the system sends SIGBUS to whoever
/// reads the lost bytes. They read as 0 instead, and check_mapped_files() throws from then on, as
/// long as the object lives.
class MappedFile {
 public:
  /// Throws DataError, with the reason, if `path` is missing, no regular file or not readable.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(address_); }
  std::size_t size() const { return size_; }

  const std::filesystem::path& path() const { return path_; }
  bool is_lost() const { return lost_; }
  /// For the handler of SIGBUS: puts zeros in the place of what lies at `address` and behind it.
  /// False where that is not this file's memory.
  bool replace_lost(std::uintptr_t address);

 private:
  const std::filesystem::path path_;
  void* address_ = nullptr;
  std::size_t size_ = 0;
  std::atomic<bool> lost_ = false;
};

/// Throws DataError naming the file if bytes of a mapped one were lost. To be called between
/// reading and using what was read.
void check_mapped_files();

}  // namespace psgd
