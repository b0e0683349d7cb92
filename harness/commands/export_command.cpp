#include "harness/commands/export_command.h"

#include <iostream>
#include <memory>
#include <string>

#include "harness/records/export.h"

namespace psgd {

int export_command(const ExportOptions& options) {
  std::vector<std::string> warnings;
  const auto runs = read_runs(options.places, warnings);
  for (const auto& warning : warnings) std::cerr << "warning: " << warning << '\n';
  write_export(runs, options.out, options.force);
  std::cout << table(runs) << '\n'
            << (options.out / "timingResults.json").string() << '\n'
            << (options.out / "results.json").string() << std::endl;
  return 0;
}

void add_export_command(CLI::App& app, CommandToRun& run) {
  auto* command =
      app.add_subcommand("export", "write timingResults.json and results.json, print the table");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("DIR", options->places, "run folders, or folders that hold some at any depth")
      ->required();
  command->add_option("--out", options->out, "folder for the two files")->required();
  command->add_flag("--force", options->force, "replace the two files if they exist");
  command->callback([options, &run] { run = [options] { return export_command(*options); }; });
}

}  // namespace psgd
