#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/records/run_reader.h"

namespace psgd {

/// Reads every run in `places`: run folders, or folders that hold some at any depth. Sorted by
/// name. Runs that ended before they recorded anything are left out with a warning. Throws
/// UsageError: a place that is missing or holds no run, two runs of one name; Error: damage, a
/// newer schema.
std::vector<Run> read_runs(const std::vector<std::filesystem::path>& places,
                           std::vector<std::string>& warnings);

/// timingResults.json: an array, one object for each finished or diverged run with a timed batch.
nlohmann::ordered_json timing_results(const std::vector<Run>& runs);

/// results.json: {"data", "jobs", "configs"}; see NUMBERS.md.
nlohmann::ordered_json results(const std::vector<Run>& runs);

/// The notebook's table as text: a row for each scheme, implementation and setup; seeds combined.
std::string table(const std::vector<Run>& runs);

/// Writes both files into `folder` (made if need be). Throws UsageError if one of them exists and
/// not `overwrite`.
void write_export(const std::vector<Run>& runs, const std::filesystem::path& folder,
                  bool overwrite);

}  // namespace psgd
