#include "harness/commands/train_command.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

#include "harness/commands/job.h"
#include "harness/error.h"
#include "harness/records/provenance.h"
#include "harness/records/run_folder.h"
#include "harness/records/run_reader.h"
#include "harness/train/agreement.h"
#include "harness/train/checkpoint.h"
#include "harness/train/run_record.h"
#include "harness/train/state_file.h"
#include "harness/train/stop_signal.h"
#include "harness/train/trainer.h"
#include "harness/train/trainer_parts.h"
#include "harness/train/watchdog.h"

namespace psgd {
namespace {

struct TrainArguments {
  OptionArguments options;
  std::filesystem::path output;
  bool resume = false;
  std::vector<std::string> command_line;
};

const char* status_name(Ending ending) {
  switch (ending) {
    case Ending::finished: return "finished";
    case Ending::interrupted: return "interrupted";
    case Ending::diverged: break;
  }
  return "diverged";
}

int exit_status(Ending ending, bool stopped) {
  if (ending == Ending::interrupted) return kInterrupted;
  return ending == Ending::diverged && stopped ? kDiverged : kFinished;
}

/// "worker 3 on host x, in phase 'forward': message".
std::string placed(const Job& job, const Watchdog* watchdog, const std::string& message) {
  std::string text = "worker " + std::to_string(job.session->worker()) + " on " + host_name();
  if (watchdog != nullptr) text += ", in phase '" + std::string(watchdog->phase()) + "'";
  return text + ": " + message;
}

/// What a failing worker needs to know beside its job.
struct Guard {
  std::unique_ptr<Watchdog> watchdog;
  std::atomic<bool> owns_folder = false;  ///< before, --output may be another run's folder
};

/// Says on the terminal and in run.json what went wrong.
void report_failure(const Job* job, const Guard& guard, const std::filesystem::path& output,
                    const std::string& message) {
  const std::string text = job == nullptr ? message : placed(*job, guard.watchdog.get(), message);
  spdlog::error("{}", text);
  if (guard.owns_folder) mark_failed(output, text);
}

/// Parameters and buffers under their names in the model.
void save_weights(Model& model, const std::filesystem::path& path) {
  write_atomically(path, pack_state([&](StateVisitor& visitor) {
                     for (auto& named : model.named_parameters()) visitor.tensor(named.key(), named.value());
                     for (auto& named : model.named_buffers()) visitor.tensor(named.key(), named.value());
                   }));
}

std::int64_t find_checkpoint(const std::filesystem::path& output) {
  const std::int64_t step = Checkpoints::newest(output);
  if (step < 0)
    throw UsageError("there is no checkpoint in " + output.string() + " to resume from; start without --resume, in a "
                     "new folder");
  return step;
}

/// Keeps what the first part of the run said of itself: when it started, and which parts it was made of.
void continue_record(nlohmann::ordered_json& record, const std::filesystem::path& output, std::int64_t step) {
  const Run before = read_run(output);
  record["started"] = before.record.at("started");
  record["resumed"] = before.record.value("resumed", nlohmann::ordered_json::array());
  record["resumed"].push_back({{"step", step}, {"at", utc_now()}, {"status_before", before.status}});
}

int train(Job& job, const TrainArguments& arguments, Guard& guard) {
  guard.watchdog = std::make_unique<Watchdog>(job.options.watchdog_seconds, [&](const std::string& message) {
    report_failure(&job, guard, arguments.output, message);
    MpiSession::abort(kFailed);
  });
  Dataset dataset;
  agree(*job.collectives, [&] {
    if (arguments.output.empty()) throw UsageError("no output folder: give --output DIR");
    if (job.options.name.empty()) job.options.name = std::filesystem::absolute(arguments.output).filename().string();
    dataset = load_dataset(dataset_options(job.options));
    check_train_images(job.options, dataset.train.count());
  });
  const auto machine = describe_machine(*job.session, *job.collectives, job.threads, job.device.str(),
                                        job.oversubscribed);
  const auto config = to_json(job.options);
  std::int64_t resumed_step = -1;
  nlohmann::ordered_json record;
  std::unique_ptr<RunFolder> folder;
  agree(*job.collectives, [&] {
    if (arguments.resume) resumed_step = find_checkpoint(arguments.output);
    if (!job.leads()) return;
    record = begin_run_record(job.options, dataset, arguments.command_line, machine);
    if (!arguments.resume) {
      folder = std::make_unique<RunFolder>(RunFolder::create(arguments.output));
      folder->write_run(record);
    }
    spdlog::info("configuration: {}", config.dump());
    spdlog::info("{} workers, {} threads each, {}, wait: {}, transport: {}{}", job.collectives->size(), job.threads,
                 job.device.str(), name(job.collectives->wait()), std::string(machine["transport"]),
                 machine["oversubscribed"].get<bool>() ? ", oversubscribed" : "");
  });
  guard.owns_folder = !arguments.resume;
  job.collectives->forget_traffic();
  catch_stop_signals();
  Checkpoints checkpoints(arguments.output, *job.collectives);
  Trainer trainer({job.options, *job.collectives, dataset, job.device, nullptr, *guard.watchdog});
  const VisitState visit = [&](StateVisitor& visitor) { trainer.visit_state(visitor); };
  if (arguments.resume) {
    trainer.prepare_resume();
    checkpoints.load(resumed_step, config, visit);
    agree(*job.collectives, [&] {
      if (!job.leads()) return;
      folder = std::make_unique<RunFolder>(RunFolder::reopen(arguments.output, resumed_step));
      continue_record(record, arguments.output, resumed_step);
      folder->write_run(record);
      spdlog::info("going on after step {}", resumed_step);
    });
    guard.owns_folder = true;
  }
  trainer.write_to(folder.get());
  trainer.save_checkpoint = [&] {
    guard.watchdog->enter("checkpoint");
    if (folder) folder->sync();
    checkpoints.save(trainer.step(), config, visit);
  };
  const Ending ending = trainer.run();
  guard.watchdog->enter("summary");
  const auto summary = trainer.summary();
  if (job.leads()) {
    record["model"] = trainer.describe_model();
    record.update(summary);
    record["status"] = status_name(ending);
    record["ended"] = utc_now();
    if (ending == Ending::diverged) record["message"] = "the loss is not finite";
    if (ending == Ending::interrupted) record["message"] = "asked to stop by a signal";
    if (job.options.save_weights) save_weights(trainer.model(), arguments.output / "weights.pt");
    folder->sync();
    folder->write_run(record);
    spdlog::info("{}: {}", status_name(ending), arguments.output.string());
  }
  guard.watchdog.reset();
  return exit_status(ending, job.options.on_divergence == "stop");
}

}  // namespace

void add_train_command(CLI::App& app, CommandToRun& run, int argc, const char* const* argv) {
  auto arguments = std::make_shared<TrainArguments>();
  arguments->command_line.assign(argv, argv + argc);
  CLI::App* command = app.add_subcommand("train", "Trains one run; start it with mpirun or srun");
  add_options(*command, arguments->options);
  command->add_option("--output", arguments->output, "Folder for the results; must be new or empty")->required();
  command->add_flag("--resume", arguments->resume, "Go on from the newest checkpoint in --output");
  command->callback([arguments, &run] {
    run = [arguments] {
      Guard guard;
      Job* current = nullptr;
      return run_job(
          arguments->options,
          [&](Job& job) {
            current = &job;
            return train(job, *arguments, guard);
          },
          [&](const std::string& message) { report_failure(current, guard, arguments->output, message); });
    };
  });
}

}  // namespace psgd
