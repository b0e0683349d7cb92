#include "harness/commands/reduce_command.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <fstream>
#include <iostream>
#include <memory>

#include "harness/commands/job.h"
#include "harness/error.h"
#include "harness/records/provenance.h"
#include "harness/train/reduction_bench.h"
#include "harness/train/run_record.h"

namespace psgd {
namespace {

struct ReduceArguments {
  OptionArguments options;
  std::filesystem::path json;
};

void print(const Options& options, const nlohmann::ordered_json& result) {
  const auto milliseconds = [&](const char* key) { return 1e3 * result.at(key).get<double>(); };
  const double reduction = milliseconds("reduction");
  std::cout << fmt::format("{}, {}, {} workers, {} steps: median, slowest worker\n",
                           options.implementation, scheme_label(options), options.n_workers,
                           options.timed_steps);
  std::cout << fmt::format("  reduction            {:9.3f} ms\n", reduction);
  std::cout << fmt::format("  bare MPI_Allreduce   {:9.3f} ms of the same {} bytes; ratio {:.2f}\n",
                           milliseconds("bare_allreduce"),
                           result.at("bits").get<std::int64_t>() / 8,
                           reduction / milliseconds("bare_allreduce"));
  std::cout << fmt::format(
      "  memory pass          {:9.3f} ms over the gradients (2 read, 1 written); ratio {:.2f}\n",
      milliseconds("memory_pass"), reduction / milliseconds("memory_pass"));
  for (const auto& [phase, seconds] : result.at("phases").items())
    if (phase != "reduce")
      std::cout << fmt::format("    {:<20} {:7.3f} ms\n", phase, 1e3 * seconds.get<double>());
  std::cout << fmt::format(
      "  checked: output + memory = input on average, to {:.1e}; equal on all workers\n",
      result.at("largest_error").get<double>());
}

int reduce(Job& job, const ReduceArguments& arguments) {
  const auto machine = describe_machine(*job.session, *job.collectives, job.threads,
                                        job.device.str(), job.oversubscribed);
  nlohmann::ordered_json result = ReductionBench(job.options, *job.collectives, job.device).run();
  if (!job.leads()) return kFinished;
  print(job.options, result);
  if (arguments.json.empty()) return kFinished;
  result["label"] = scheme_label(job.options);
  result["config"] = to_json(job.options);
  result["build"] = build_info();
  result["machine"] = machine;
  result["date"] = utc_now();
  std::ofstream file(arguments.json);
  file << result.dump(2) << '\n';
  if (!file.flush()) throw Error("could not write " + arguments.json.string());
  return kFinished;
}

}  // namespace

void add_reduce_command(CLI::App& app, CommandToRun& run) {
  auto arguments = std::make_shared<ReduceArguments>();
  CLI::App* command =
      app.add_subcommand("reduce", "Times the reduction of one step's gradients, without training");
  add_options(*command, arguments->options);
  command->add_option("--json", arguments->json, "File for the result as JSON");
  command->callback([arguments, &run] {
    run = [arguments] {
      return run_job(
          arguments->options, [&](Job& job) { return reduce(job, *arguments); },
          [](const std::string& message) { spdlog::error("{}", message); });
    };
  });
}

}  // namespace psgd
