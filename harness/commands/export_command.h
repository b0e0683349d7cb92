#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <vector>

#include "harness/commands/command.h"

namespace psgd {

struct ExportOptions {
  std::vector<std::filesystem::path> places;  ///< run folders or folders of them
  std::filesystem::path out;
  bool force = false;  ///< replace files that exist
};

/// Writes timingResults.json and results.json and prints the table. Returns 0; throws UsageError
/// and Error.
int export_command(const ExportOptions& options);

void add_export_command(CLI::App& app, CommandToRun& run);

}  // namespace psgd
