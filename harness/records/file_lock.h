#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace psgd {

/// A file that one process at a time may hold, among those that ask. Let go when the object or the
/// process ends. File systems that know no locks let everyone in.
class FileLock {
 public:
  enum class Mode { wait, try_once };

  /// The file is opened for writing: NFS locks no other.
  FileLock(const std::filesystem::path& path, Mode mode)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    if (descriptor_ < 0) return;
    const int operation = mode == Mode::wait ? LOCK_EX : LOCK_EX | LOCK_NB;
    is_taken_ = ::flock(descriptor_, operation) != 0 && errno == EWOULDBLOCK;
  }
  ~FileLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Another process holds it. Mode::try_once only.
  bool is_taken() const { return is_taken_; }

 private:
  int descriptor_;
  bool is_taken_ = false;
};

}  // namespace psgd
