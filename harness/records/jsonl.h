#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace psgd {

/// One line of a .jsonl file, with its '\n'. NaN and infinities become null, broken UTF-8 U+FFFD.
std::string json_line(const nlohmann::ordered_json& value);

/// Appends whole lines to a file. What was there before a failed write stays as it was.
class LineWriter {
 public:
  /// Opens or creates the file. Throws Error.
  explicit LineWriter(const std::filesystem::path& path);
  ~LineWriter();
  LineWriter(LineWriter&& other) noexcept;
  LineWriter& operator=(LineWriter&&) = delete;
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// Hands whole lines (each ending in '\n') to the operating system. On failure (full disk, ...)
  /// cuts the file back to what it held before and throws Error with path and reason.
  void append(const std::string& lines);
  /// Waits until everything is on the disk. Throws Error.
  void sync();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Calls `visit` with each line's object, in order, and the offset behind it. A torn last line (the
/// writer was killed, the disk was full) is skipped with a warning in `warnings`. Throws Error for
/// anything else that is not a JSON object, and where the file is missing or unreadable.
void for_each_line(
    const std::filesystem::path& path, std::vector<std::string>& warnings,
    const std::function<void(const nlohmann::ordered_json& line, std::uint64_t end)>& visit);

/// All lines at once.
std::vector<nlohmann::ordered_json> read_lines(const std::filesystem::path& path,
                                               std::vector<std::string>& warnings);

/// The last whole lines, at most `count`, reading only the end of the file (256 KiB). Empty for an
/// empty file.
std::vector<nlohmann::ordered_json> read_last_lines(const std::filesystem::path& path,
                                                    std::size_t count);

}  // namespace psgd
