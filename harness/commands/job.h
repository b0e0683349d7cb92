#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "harness/config/config_reader.h"
#include "harness/data/dataset.h"
#include "harness/mpi/mpi_collectives.h"
#include "harness/mpi/session.h"

namespace psgd {

/// What every command that runs under a launcher begins with.
struct Job {
  Options options;
  std::unique_ptr<MpiSession> session;
  std::unique_ptr<MpiCollectives> collectives;
  torch::Device device = torch::kCPU;
  int threads = 1;
  bool oversubscribed = false;
  bool leads() const { return collectives->worker() == 0; }
};

/// Runs `work` on a job made from `arguments`: MPI started, options read and agreed on, the
/// collectives tested, threads and device set. Returns the exit status, the same on all workers
/// unless one fails alone; then `on_failure(message)` is called there, the message naming worker
/// and host, and the whole job is ended.
int run_job(const OptionArguments& arguments, const std::function<int(Job&)>& work,
            const std::function<void(const std::string&)>& on_failure);

/// What main() returns for a command line that cannot be read (or asks for help), after saying so:
/// once, though each worker of a job finds out by itself, before MPI runs.
int end_at_command_line(const CLI::App& app, const CLI::ParseError& error);

}  // namespace psgd
