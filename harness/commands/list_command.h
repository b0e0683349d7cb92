#pragma once

#include <CLI/CLI.hpp>
#include <ostream>

#include "harness/commands/command.h"

namespace psgd {

/// Prints what the registries hold: schemes with their options, models, data sets.
void list_registries(std::ostream& out);

void add_list_command(CLI::App& app, CommandToRun& run);

}  // namespace psgd
