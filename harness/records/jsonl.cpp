#include "harness/records/jsonl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "harness/config/strict_json.h"
#include "harness/error.h"
#include "harness/records/file_error.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// The line's object. Throws Error, with `origin`, for anything else.
Json parse_line(const std::string& line, const std::string& origin) {
  Json value = parse_json(line, origin);
  if (!value.is_object()) throw Error(origin + ": expected a JSON object, found " + shown(value));
  return value;
}

std::ifstream open_for_reading(const fs::path& path) {
  std::error_code error;
  const auto type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) throw Error(path.string() + ": there is no such file");
  if (type != fs::file_type::regular) throw Error(path.string() + ": expected a regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_on_file(path, "cannot be opened", errno);
  return file;
}

}  // namespace

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

LineWriter::LineWriter(const fs::path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_on_file(path_, "cannot be opened for writing", errno);
}

LineWriter::LineWriter(LineWriter&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

LineWriter::~LineWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LineWriter::append(const std::string& lines) {
  struct stat before {};
  if (::fstat(descriptor_, &before) != 0) fail_on_file(path_, "cannot be examined", errno);
  std::size_t written = 0;
  while (written < lines.size()) {
    const ssize_t count = ::write(descriptor_, lines.data() + written, lines.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    // A part of a line may have got through. Should cutting it off fail too, readers skip it as
    // torn.
    if (written > 0 && ::ftruncate(descriptor_, before.st_size) != 0)
      fail_on_file(path_, "cannot be written or cut", error);
    fail_on_file(path_, "cannot be written (what it held before is kept)", error);
  }
}

void LineWriter::sync() {
  // EINVAL: the file is not one that can be synchronised, such as a device.
  if (::fsync(descriptor_) != 0 && errno != EINVAL)
    fail_on_file(path_, "cannot be synchronised", errno);
}

void for_each_line(const fs::path& path, std::vector<std::string>& warnings,
                   const std::function<void(const Json&, std::uint64_t)>& visit) {
  std::ifstream file = open_for_reading(path);
  std::string line;
  std::uint64_t end = 0;
  for (std::uint64_t number = 1; std::getline(file, line); ++number) {
    const bool is_whole = !file.eof();  // getline met a '\n'
    end += line.size() + (is_whole ? 1 : 0);
    const bool is_last = !is_whole || file.peek() == std::ifstream::traits_type::eof();
    Json value;
    try {
      value = parse_line(line, path.string() + ", line " + std::to_string(number));
    } catch (const Error& error) {
      if (!is_last) throw;
      warnings.push_back(std::string(error.what()) + " (a torn last line: skipped)");
      return;
    }
    visit(value, end);
  }
  if (file.bad()) fail_on_file(path, "cannot be read", errno);
}

std::vector<Json> read_lines(const fs::path& path, std::vector<std::string>& warnings) {
  std::vector<Json> lines;
  for_each_line(path, warnings, [&](const Json& line, std::uint64_t) { lines.push_back(line); });
  return lines;
}

std::vector<Json> read_last_lines(const fs::path& path, std::size_t count) {
  constexpr std::streamoff kTail = 256 * 1024;
  std::ifstream file = open_for_reading(path);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTail));
  std::string line;
  if (size > kTail) std::getline(file, line);  // most likely the end of a line
  std::vector<std::string> texts;
  while (std::getline(file, line)) texts.push_back(line);
  std::vector<Json> last;
  for (auto text = texts.rbegin(); text != texts.rend() && last.size() < count; ++text) {
    try {
      last.push_back(parse_line(*text, path.string() + ", near its end"));
    } catch (const Error&) {
      if (text != texts.rbegin()) throw;  // only the last one may be torn
    }
  }
  std::ranges::reverse(last);
  return last;
}

}  // namespace psgd
