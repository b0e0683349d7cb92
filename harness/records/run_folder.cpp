#include "harness/records/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/config/strict_json.h"
#include "harness/error.h"
#include "harness/records/file_error.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path) {
  throw UsageError(path.string() +
                   ": expected a new or empty folder, but it holds something, and results are "
                   "never overwritten; "
                   "choose another folder, or --resume to go on with the run in it");
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(path.string() + ": the folder cannot be made: " + error.message());
  const bool is_empty = fs::is_empty(path, error);
  if (error) throw Error(path.string() + ": the folder cannot be read: " + error.message());
  if (!is_empty) refuse(path);
}

/// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

/// Writes all of `text`; returns 0 or errno.
int write_all(int descriptor, const std::string& text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  return 0;
}

/// The step in which this run.json appears decides which of several processes owns the folder.
void claim(const fs::path& path) {
  const fs::path file = path / "run.json";
  const Descriptor descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (descriptor.get() < 0 && errno == EEXIST) refuse(path);
  if (descriptor.get() < 0) fail_on_file(file, "cannot be created", errno);
  const Json first = {{"schema_version", kSchemaVersion}, {"status", "running"}};
  if (const int error = write_all(descriptor.get(), json_line(first)); error != 0) {
    ::unlink(file.c_str());
    fail_on_file(file, "cannot be written", error);
  }
}

/// Cuts the file behind the last whole line whose step is at most `step`.
void cut_behind(const fs::path& path, std::int64_t step) {
  if (!fs::exists(path)) return;
  std::uint64_t keep = 0;
  bool beyond = false;
  std::vector<std::string> torn;
  const std::uint64_t size = fs::file_size(path);
  for_each_line(path, torn, [&](const Json& line, std::uint64_t end) {
    if (!line.contains("step") || !line["step"].is_number_integer())
      throw Error(path.string() + ": a line has no step: " + shown(line));
    beyond = beyond || line["step"].get<std::int64_t>() > step;
    if (!beyond) keep = end;
  });
  std::error_code error;
  if (keep < size) fs::resize_file(path, keep, error);
  if (error)
    throw Error(path.string() + ": cannot be cut to " + std::to_string(keep) +
                " bytes: " + error.message());
}

/// A last line may be complete and lack only its end; what follows must not be glued to it.
void end_last_line(const fs::path& path) {
  if (!fs::exists(path) || fs::file_size(path) == 0) return;
  const std::string text = [&] {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char last = 0;
    if (descriptor.get() < 0 || ::lseek(descriptor.get(), -1, SEEK_END) < 0 ||
        ::read(descriptor.get(), &last, 1) != 1)
      fail_on_file(path, "cannot be read", errno);
    return std::string(1, last);
  }();
  if (text != "\n") LineWriter(path).append("\n");
}

}  // namespace

void write_atomically(const fs::path& path, const std::string& text) {
  const fs::path temporary = path.string() + ".tmp";
  {
    const Descriptor descriptor(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (descriptor.get() < 0) fail_on_file(temporary, "cannot be created", errno);
    int error = write_all(descriptor.get(), text);
    if (error == 0 && ::fsync(descriptor.get()) != 0) error = errno;
    if (error != 0) {
      ::unlink(temporary.c_str());
      fail_on_file(path, "cannot be written (what it held before is kept)", error);
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail_on_file(path, "cannot be replaced", error);
  }
  // The new name itself must reach the disk too. Some file systems cannot do this for folders; that
  // is no failure.
  const fs::path parent = path.parent_path();
  const Descriptor folder(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

RunFolder::RunFolder(const fs::path& path)
    : path_(path), metrics_(path / "metrics.jsonl"), batches_(path / "batches.jsonl") {}

RunFolder RunFolder::create(const fs::path& path) {
  make_folder(path);
  claim(path);
  return RunFolder(path);
}

RunFolder RunFolder::reopen(const fs::path& path, std::int64_t step) {
  if (!fs::exists(path / "run.json"))
    throw UsageError(path.string() + ": there is no run to resume: it has no run.json");
  for (const char* name : {"metrics.jsonl", "batches.jsonl"}) {
    cut_behind(path / name, step);
    end_last_line(path / name);
  }
  return RunFolder(path);
}

void RunFolder::write_run(const Json& run) {
  write_atomically(path_ / "run.json",
                   run.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void RunFolder::append_metrics(const Json& line) { metrics_.append(json_line(line)); }

void RunFolder::append_batches(const std::vector<Json>& lines) {
  std::string text;
  for (const auto& line : lines) text += json_line(line);
  batches_.append(text);
}

void RunFolder::sync() {
  metrics_.sync();
  batches_.sync();
}

}  // namespace psgd
