#include "harness/commands/train_guard.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>

#include "harness/error.h"
#include "harness/records/run_failure.h"

namespace psgd {
namespace {

/// Should MPI fail to end the job, this process at least ends, which the launcher sees.
constexpr unsigned kSecondsToAbort = 10;

/// How long worker 0 has to note that the launcher ends the job before the others do. With
/// PeerWatch's patience less than the second after which mpirun kills.
constexpr std::chrono::milliseconds kHeadStart{200};

std::atomic<TrainGuard*> present_guard = nullptr;

[[noreturn]] void end_job() {
  present_guard = nullptr;  // MPI may call exit()
  std::signal(SIGALRM, SIG_DFL);
  ::alarm(kSecondsToAbort);
  MpiSession::abort(kFailed);
}

void at_exit() {
  if (TrainGuard* guard = present_guard.load())
    guard->fail("exit() was called in the middle of the run");
}

/// For exceptions in threads where nobody catches them.
[[noreturn]] void at_terminate() {
  std::string text = "ended without a reason given";
  try {
    if (const auto exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "an exception that is no std::exception";
  }
  if (TrainGuard* guard = present_guard.load()) guard->fail(text);
  std::abort();
}

}  // namespace

TrainGuard::TrainGuard(Job& job, std::filesystem::path output)
    : job_(job), output_(std::move(output)), board_(job_.session->communicator()) {
  const auto peers = find_peers(*job_.collectives);
  watchdog_ = std::make_unique<Watchdog>(
      job_.options.watchdog_seconds,
      Watchdog::Calls{[this](const std::string& message) { fail(message); },
                      [this] { return job_.collectives->is_busy(); },
                      [this](const char* phase) { board_.note(phase); }});
  board_.note(watchdog_->phase());
  peers_ =
      std::make_unique<PeerWatch>(job_.session->worker(), peers,
                                  PeerWatch::Calls{[this](int worker) { report_death(worker); },
                                                   [this] { note_termination(); }});
  present_guard = this;
  [[maybe_unused]] static const int registered = std::atexit(&at_exit);
  std::set_terminate(&at_terminate);
}

TrainGuard::~TrainGuard() {
  present_guard = nullptr;
  peers_.reset();
  watchdog_.reset();
}

std::string TrainGuard::place(int worker) const {
  return "worker " + std::to_string(worker) + " on " + host_name();
}

/// One message: of workers that fail at once, or of one that fails and those that see it end, the
/// first speaks. Those of one host know from its board, those of others from run.json, which a full
/// disk keeps from telling.
void TrainGuard::report(const std::string& text) {
  if (!board_.take_the_word()) return;
  if (owns_folder_ && mark_failed(output_, text) == Marked::before) return;
  spdlog::error("{}", text);
}

void TrainGuard::fail(const std::string& message) {
  if (failing_.exchange(true))
    while (true) ::pause();  // another thread is ending the process
  report(place(job_.session->worker()) + ", in phase '" + phase() + "': " + message);
  end_job();
}

void TrainGuard::report_death(int worker) {
  if (failing_.exchange(true)) return;
  const std::string its = board_.note_of(worker);
  report(place(worker) + ", in phase '" + (its.empty() ? "unknown" : its) +
         "': it is gone (killed, or it exited without a word)");
  end_job();
}

/// Worker 0 first. Another one if run.json still says "running" then: worker 0 is what the launcher
/// saw end, on a host where nobody else could. Worker 0 overwrites this should it come to a
/// checkpoint after all.
void TrainGuard::note_termination() {
  if (!owns_folder_) return;
  if (!job_.leads()) std::this_thread::sleep_for(kHeadStart);
  mark_ended_by_launcher(output_, phase());
}

void TrainGuard::own_folder() {
  owns_folder_ = true;
  agree(*job_.collectives, [] {});
}

AgreedError TrainGuard::note(const AgreedError& error) {
  const std::string text = error.everywhere
                               ? std::string(error.what())
                               : std::string(error.what()) + " (in phase '" + phase() + "')";
  if (job_.leads() && owns_folder_) mark_failed(output_, text);
  return {text, error.status, error.everywhere};
}

}  // namespace psgd
