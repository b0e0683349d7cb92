#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/records/jsonl.h"

namespace psgd {

/// The newest layout of a run folder that this program writes and reads.
constexpr std::int64_t kSchemaVersion = 1;

/// Writes a run's folder. Worker 0 only. At any moment, also after a kill or on a full disk, the
/// files are valid: run.json is replaced whole, the others hold whole lines and at worst a torn
/// last one.
class RunFolder {
 public:
  /// Makes the folder (and those above it). Throws UsageError if it holds anything: results are
  /// never overwritten. Of several processes that call this at once for one folder, one succeeds.
  static RunFolder create(const std::filesystem::path& path);

  /// Opens a run's folder to go on after its checkpoint: cuts off a torn last line and every line
  /// with a "step" above `step`. Lines of a step must therefore be written before its checkpoint.
  /// Throws UsageError where there is no run, Error for damage.
  static RunFolder reopen(const std::filesystem::path& path, std::int64_t step);

  const std::filesystem::path& path() const { return path_; }

  /// Replaces run.json: a new file, on the disk before it takes the old one's name. Throws Error;
  /// the old one then stays.
  void write_run(const nlohmann::ordered_json& run);
  void append_metrics(const nlohmann::ordered_json& line);
  void append_batches(const std::vector<nlohmann::ordered_json>& lines);
  /// Waits until all lines are on the disk; to be called before a checkpoint that counts on them.
  void sync();

 private:
  explicit RunFolder(const std::filesystem::path& path);

  std::filesystem::path path_;
  LineWriter metrics_;
  LineWriter batches_;
};

/// Writes a file whole or not at all: a temporary beside it, on the disk, renamed. Throws Error.
void write_atomically(const std::filesystem::path& path, const std::string& text);

}  // namespace psgd
