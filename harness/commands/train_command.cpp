#include "harness/commands/train_command.h"

#include <spdlog/spdlog.h>

#include <memory>

#include "harness/commands/job.h"
#include "harness/commands/train_guard.h"
#include "harness/error.h"
#include "harness/records/file_lock.h"
#include "harness/records/provenance.h"
#include "harness/records/run_failure.h"
#include "harness/records/run_folder.h"
#include "harness/records/run_reader.h"
#include "harness/train/agreement.h"
#include "harness/train/checkpoint.h"
#include "harness/train/run_record.h"
#include "harness/train/state_file.h"
#include "harness/train/stop_signal.h"
#include "harness/train/trainer.h"
#include "harness/train/trainer_parts.h"

namespace psgd {
namespace {

namespace fs = std::filesystem;

struct TrainArguments {
  OptionArguments options;
  fs::path output;
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

/// Parameters and buffers under their names in the model.
void save_weights(Model& model, const fs::path& path) {
  write_atomically(path, pack_state(take_state([&](StateVisitor& visitor) {
                     for (auto& named : model.named_parameters())
                       visitor.tensor(named.key(), named.value());
                     for (auto& named : model.named_buffers())
                       visitor.tensor(named.key(), named.value());
                   })));
}

/// The run that --resume goes on with.
struct Former {
  std::int64_t step = -1;  ///< of its newest checkpoint
  Run run;
};

/// Worker 0 only. Throws UsageError where there is nothing to go on with.
Former find_former(const fs::path& output, const Options& options) {
  Former former;
  former.step = Checkpoints::newest(output);
  if (former.step < 0)
    throw UsageError("there is no checkpoint in " + output.string() +
                     " to resume from; start without --resume, in a "
                     "new folder");
  former.run = read_run(output);
  if (former.run.status == "finished")
    throw UsageError("the run in " + output.string() + " is finished already");
  if (former.run.status == "diverged" && options.on_divergence == "stop")
    throw UsageError("the run in " + output.string() +
                     " diverged, and would again; to go on all the same, --set "
                     "on_divergence=continue");
  return former;
}

/// Keeps what the first part of the run said of itself: when it started, and which parts it was
/// made of.
void continue_record(nlohmann::ordered_json& record, const Former& former) {
  const auto& before = former.run.record;
  record["started"] = before.value("started", record["started"]);
  record["resumed"] = before.value("resumed", nlohmann::ordered_json::array());
  record["resumed"].push_back(
      {{"step", former.step}, {"at", utc_now()}, {"status_before", former.run.status}});
}

/// One run in progress. Its steps are called in the order in which they stand here, by all workers
/// together.
class TrainRun {
 public:
  TrainRun(Job& job, const TrainArguments& arguments, TrainGuard& guard)
      : job_(job), arguments_(arguments), guard_(guard), output_(arguments.output) {}

  /// Makes the output folder this run's, or finds the checkpoint in it.
  void open_folder() {
    guard_.watchdog().enter("opening the output folder");
    agree(*job_.collectives, [&] {
      if (output_.empty()) throw UsageError("no output folder: give --output DIR");
      if (job_.options.name.empty())
        job_.options.name = fs::absolute(output_).lexically_normal().filename().string();
      if (!job_.leads()) return;
      if (arguments_.resume) {
        former_ = find_former(output_, job_.options);
      } else {
        existed_ = fs::exists(output_);
        folder_ = std::make_unique<RunFolder>(RunFolder::create(output_));
      }
      lock();
    });
    if (!arguments_.resume) guard_.own_folder();
  }

  void load() {
    guard_.watchdog().enter("loading");
    try {
      agree(*job_.collectives, [&] {
        dataset_ = load_dataset(dataset_options(job_.options));
        check_train_images(job_.options, dataset_.train.count());
      });
    } catch (const AgreedError& error) {
      if (error.everywhere) give_folder_up();
      throw;
    }
    const auto machine = describe_machine(*job_.session, *job_.collectives, job_.threads,
                                          job_.device.str(), job_.oversubscribed);
    agree(*job_.collectives, [&] {
      if (!job_.leads()) return;
      record_ = begin_run_record(job_.options, dataset_, arguments_.command_line, machine);
      if (folder_) folder_->write_run(record_);
      spdlog::info("configuration: {}", record_["config"].dump());
      spdlog::info("{} workers, {} threads each, {}, wait: {}, transport: {}{}",
                   job_.collectives->size(), job_.threads, job_.device.str(),
                   name(job_.collectives->wait()), std::string(machine["transport"]),
                   machine["oversubscribed"].get<bool>() ? ", oversubscribed" : "");
    });
    job_.collectives->forget_traffic();
  }

  Ending train() {
    guard_.watchdog().enter("building the model");
    Checkpoints checkpoints(output_, *job_.collectives);
    Trainer trainer(
        {job_.options, *job_.collectives, dataset_, job_.device, nullptr, guard_.watchdog()});
    return guard_.protect([&] {
      if (arguments_.resume) restore(trainer, checkpoints);
      trainer.write_to(folder_.get());
      trainer.save_checkpoint = [&] { save(trainer, checkpoints); };
      const Ending ending = trainer.run();
      guard_.watchdog().enter("summary");
      finish(trainer, trainer.summary(), ending);
      return ending;
    });
  }

 private:
  /// Two processes that go on with one run would mix their lines.
  void lock() {
    lock_ = std::make_unique<FileLock>(output_ / "batches.jsonl", FileLock::Mode::try_once);
    if (lock_->is_taken())
      throw UsageError("the run in " + output_.string() +
                       " is still going on: another process writes to it");
  }

  /// What the run was told cannot be: nothing has happened that is worth a folder.
  void give_folder_up() {
    if (!folder_) return;
    folder_.reset();
    std::error_code error;
    for (const char* name : {"metrics.jsonl", "batches.jsonl", "run.json"})
      fs::remove(output_ / name, error);
    if (!existed_) fs::remove(output_, error);
  }

  static VisitState state_of(Trainer& trainer) {
    return [&](StateVisitor& visitor) { trainer.visit_state(visitor); };
  }

  void restore(Trainer& trainer, Checkpoints& checkpoints) {
    guard_.watchdog().enter("reading the checkpoint");
    std::string step = std::to_string(former_.step);
    job_.collectives->broadcast_text(step, 0);
    former_.step = std::stoll(step);
    trainer.prepare_resume();
    checkpoints.load(former_.step, to_json(job_.options), state_of(trainer));
    agree(*job_.collectives, [&] {
      if (!job_.leads()) return;
      checkpoints.cut_records(former_.step);
      folder_ = std::make_unique<RunFolder>(RunFolder::reopen(output_, former_.step));
      continue_record(record_, former_);
      folder_->write_run(record_);
      spdlog::info("going on after step {}", former_.step);
    });
    guard_.own_folder();
  }

  void save(Trainer& trainer, Checkpoints& checkpoints) {
    guard_.watchdog().enter("checkpoint");
    if (folder_) folder_->sync();
    checkpoints.save(trainer.step(), to_json(job_.options), state_of(trainer));
  }

  void finish(Trainer& trainer, const nlohmann::ordered_json& summary, Ending ending) {
    guard_.end_peer_watch();
    if (!job_.leads()) return;
    record_["model"] = trainer.describe_model();
    record_.update(summary);
    record_["status"] = status_name(ending);
    record_["ended"] = utc_now();
    if (ending == Ending::diverged) record_["message"] = "the loss is not finite";
    if (ending == Ending::interrupted) record_["message"] = "asked to stop by a signal";
    if (job_.options.save_weights) save_weights(trainer.model(), output_ / "weights.pt");
    folder_->sync();
    {
      const RunJsonLock lock(
          output_);  // of the others, one may just be noting that the launcher ends the job
      folder_->write_run(record_);
    }
    spdlog::info("{}: {}", status_name(ending), output_.string());
  }

  Job& job_;
  const TrainArguments& arguments_;
  TrainGuard& guard_;
  const fs::path output_;
  bool existed_ = false;  ///< the output folder, before this run
  Former former_;         ///< with --resume; worker 0 only, but for the step
  Dataset dataset_;
  nlohmann::ordered_json record_;  ///< worker 0 only, as all below
  std::unique_ptr<RunFolder> folder_;
  std::unique_ptr<FileLock> lock_;
};

int train(Job& job, const TrainArguments& arguments) {
  TrainGuard guard(job, arguments.output);
  try {
    return guard.protect([&] {
      TrainRun run(job, arguments, guard);
      run.open_folder();
      run.load();
      return exit_status(run.train(), job.options.on_divergence == "stop");
    });
  } catch (const AgreedError& error) {
    throw guard.note(error);
  }
}

}  // namespace

void add_train_command(CLI::App& app, CommandToRun& run, int argc, const char* const* argv) {
  auto arguments = std::make_shared<TrainArguments>();
  arguments->command_line.assign(argv, argv + argc);
  CLI::App* command = app.add_subcommand("train", "Trains one run; start it with mpirun or srun");
  add_options(*command, arguments->options);
  command->add_option("--output", arguments->output, "Folder for the results; must be new or empty")
      ->required();
  command->add_flag("--resume", arguments->resume, "Go on from the newest checkpoint in --output");
  command->callback([arguments, &run] {
    run = [arguments] {
      catch_stop_signals();
      return run_job(
          arguments->options, [&](Job& job) { return train(job, *arguments); },
          [](const std::string& message) { spdlog::error("{}", message); });
    };
  });
}

}  // namespace psgd
