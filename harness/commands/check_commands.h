#pragma once

#include <CLI/CLI.hpp>

#include "harness/commands/command.h"

namespace psgd {

/// `check-data DIR`: reads a data set as training would and says what is there.
/// `check-config`: reads a configuration as training would and prints it resolved. Neither needs a
/// launcher.
void add_check_commands(CLI::App& app, CommandToRun& run);

}  // namespace psgd
