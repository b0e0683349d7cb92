#pragma once

#include <CLI/CLI.hpp>

#include "harness/commands/command.h"

namespace psgd {

/// `train --config FILE --output DIR`: one run, on all workers that the launcher started.
void add_train_command(CLI::App& app, CommandToRun& run, int argc, const char* const* argv);

}  // namespace psgd
