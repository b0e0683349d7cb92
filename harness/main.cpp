#include <CLI/CLI.hpp>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <stdexcept>

#include "harness/commands/check_commands.h"
#include "harness/commands/export_command.h"
#include "harness/commands/job.h"
#include "harness/commands/list_command.h"
#include "harness/commands/reduce_command.h"
#include "harness/commands/train_command.h"
#include "harness/error.h"

namespace {

int run_program(int argc, char** argv) {
  CLI::App app{
      "Does gradient compression pay? Trains and times the CIFAR-10 experiments of the PowerSGD "
      "paper."};
  app.name("powersgd-bench");
  app.require_subcommand(1);
  psgd::CommandToRun run;
  psgd::add_train_command(app, run, argc, argv);
  psgd::add_reduce_command(app, run);
  psgd::add_export_command(app, run);
  psgd::add_list_command(app, run);
  psgd::add_check_commands(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return psgd::end_at_command_line(app, error);
  }
  return run();
}

}  // namespace

int main(int argc, char** argv) {
  // Results go to the standard output, words about them to the standard error.
  spdlog::set_default_logger(spdlog::stderr_color_mt("powersgd-bench"));
  spdlog::set_pattern("%^%l%$: %v");
  try {
    return run_program(argc, argv);
  } catch (const psgd::UsageError& error) {
    spdlog::error("{}", error.what());
    return psgd::kUsage;
  } catch (const std::invalid_argument& error) {
    spdlog::error("{}", error.what());
    return psgd::kUsage;
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return psgd::kFailed;
  }
}
