#include "harness/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/data/dataset.h"

namespace psgd {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason) {
  throw DataError("cannot read " + path.string() + ": " + reason);
}

/// Closes a descriptor at the end of a block.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  const Descriptor descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (descriptor.number < 0) fail(path, std::strerror(errno));
  struct stat information {};
  if (::fstat(descriptor.number, &information) != 0) fail(path, std::strerror(errno));
  if (S_ISDIR(information.st_mode)) fail(path, "it is a folder, but a file was expected");
  if (!S_ISREG(information.st_mode)) fail(path, "it is not a regular file");
  size_ = static_cast<std::size_t>(information.st_size);
  if (size_ == 0) return;  // nothing to map, and mmap refuses length 0
  address_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.number, 0);
  if (address_ == MAP_FAILED) fail(path, std::strerror(errno));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(address_, size_);
}

}  // namespace psgd
