#pragma once

#include <CLI/CLI.hpp>

#include "harness/commands/command.h"

namespace psgd {

/// `reduce --config FILE`: times the reduction of one step's gradients, with no model running,
/// checks its result, and times beside it, in turn, a bare MPI_Allreduce of the same bytes and one
/// pass over the gradients' memory.
void add_reduce_command(CLI::App& app, CommandToRun& run);

}  // namespace psgd
