#include "harness/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <stdexcept>

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

// The handler of SIGBUS reads these and may not wait, so there is a fixed number. The lock is for
// everybody else.
std::array<std::atomic<MappedFile*>, 64> mapped_files{};
std::mutex lock_of_mapped_files;

struct sigaction action_before {};

void on_bus_error(int signal, siginfo_t* information, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  for (const auto& file : mapped_files)
    if (MappedFile* mapped = file.load(); mapped && mapped->replace_lost(address)) return;
  // Not ours: the instruction runs again and meets the former handler, unless a process sent the
  // signal.
  ::sigaction(SIGBUS, &action_before, nullptr);
  if (information->si_code <= 0) ::raise(signal);
}

void enter(MappedFile* file) {
  const std::lock_guard lock(lock_of_mapped_files);
  [[maybe_unused]] static const bool catches = [] {
    struct sigaction action {};
    action.sa_sigaction = &on_bus_error;
    action.sa_flags = SA_SIGINFO;
    return ::sigaction(SIGBUS, &action, &action_before) == 0;
  }();
  for (auto& place : mapped_files)
    if (place.load() == nullptr) {
      place = file;
      return;
    }
  throw std::logic_error("more files are mapped at once than can be watched");
}

void leave(const MappedFile* file) {
  const std::lock_guard lock(lock_of_mapped_files);
  for (auto& place : mapped_files)
    if (place.load() == file) place = nullptr;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
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
  try {
    enter(this);
  } catch (...) {
    ::munmap(address_, size_);
    throw;
  }
}

MappedFile::~MappedFile() {
  if (size_ == 0) return;
  leave(this);
  ::munmap(address_, size_);
}

bool MappedFile::replace_lost(std::uintptr_t address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address_);
  if (address < begin || address >= begin + size_) return false;
  const auto page = address - address % static_cast<std::uintptr_t>(::getpagesize());
  lost_ = true;
  return ::mmap(reinterpret_cast<void*>(page), begin + size_ - page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void check_mapped_files() {
  const std::lock_guard lock(lock_of_mapped_files);
  for (const auto& file : mapped_files)
    if (const MappedFile* mapped = file.load(); mapped && mapped->is_lost())
      fail(mapped->path(), "it was cut, or its disk failed, while this process used it");
}

}  // namespace psgd
