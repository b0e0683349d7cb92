#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace psgd {

/// A number for each worker, combined.
struct MinMeanMax {
  double min = 0;
  double mean = 0;
  double max = 0;
};

/// What a run folder says, checked as far as export, tables and plots need it.
struct Run {
  std::filesystem::path folder;
  nlohmann::ordered_json record;  ///< run.json
  std::string name;
  std::string status;  ///< "running", "finished", "failed", "interrupted" or "diverged"
  std::string implementation;
  std::string scheme;
  std::string label;            ///< "rank 2"
  nlohmann::ordered_json rank;  ///< 0, "FP16", 1, ... as in timingResults.json
  nlohmann::ordered_json config;
  std::vector<nlohmann::ordered_json> metrics;
  std::optional<MinMeanMax>
      batch_seconds;  ///< over workers; from run.json, else from batches.jsonl
  std::int64_t batches_timed = 0;
  std::int64_t steps = 0;                      ///< of the last line of batches.jsonl
  std::int64_t bits = 0;                       ///< likewise, since the start
  std::optional<std::int64_t> bits_last_step;  ///< of the last step alone
  std::vector<std::string> warnings;           ///< torn lines and the like, each with its path
};

/// Whether the folder holds a run (has a run.json).
bool is_run_folder(const std::filesystem::path& folder);

/// Throws Error: no run.json, damaged files, a schema newer than ours (both versions named).
Run read_run(const std::filesystem::path& folder);

}  // namespace psgd
