#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace psgd {

/// A folder for the files of a fuzz target, in memory where the machine has such a place; removed
/// at the end.
class FuzzFolder {
 public:
  explicit FuzzFolder(const std::string& name) {
    const std::filesystem::path shared_memory = "/dev/shm";
    const auto above = std::filesystem::is_directory(shared_memory)
                           ? shared_memory
                           : std::filesystem::temp_directory_path();
    path_ = above / ("psgd-fuzz-" + name + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~FuzzFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace psgd
