#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "harness/commands/job.h"
#include "harness/mpi/host_board.h"
#include "harness/train/agreement.h"
#include "harness/train/peer_watch.h"
#include "harness/train/watchdog.h"

namespace psgd {

/// Sees to it that a training run ends as a whole, soon and with one message, whatever happens to
/// one of its workers: it throws, calls exit(), stands still, or is gone. The message names worker,
/// host and phase, and goes to the terminal and into run.json. One object in a process, destroyed
/// before MPI is finalised.
class TrainGuard {
 public:
  /// All workers together.
  TrainGuard(Job& job, std::filesystem::path output);
  ~TrainGuard();
  TrainGuard(const TrainGuard&) = delete;
  TrainGuard& operator=(const TrainGuard&) = delete;

  Watchdog& watchdog() { return *watchdog_; }

  /// From here on the output folder is this run's, and run.json tells of failures. Until then it
  /// may be another's. All workers together: none goes on, and may fail, before all know.
  void own_folder();

  /// The run is over but for worker 0's last words: no signal and no other worker's end can make it
  /// fail any more.
  void end_peer_watch() { peers_.reset(); }

  /// This worker has failed, alone: says so and ends all workers. Any thread may call.
  [[noreturn]] void fail(const std::string& message);

  /// Notes in run.json an error that all workers know of, and returns it with the phase in its
  /// message.
  AgreedError note(const AgreedError& error);

  /// Returns work(). What it throws ends the job from inside, before destructors wait for threads
  /// that will never end; AgreedError passes.
  template <class Work>
  auto protect(Work work) {
    try {
      return work();
    } catch (const AgreedError&) {
      throw;
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    } catch (...) {
      fail("an exception that is no std::exception");
    }
  }

 private:
  void report(const std::string& text);
  void report_death(int worker);
  void note_termination();
  std::string place(int worker) const;
  std::string phase() const { return watchdog_->phase(); }

  Job& job_;
  std::filesystem::path output_;
  std::atomic<bool> owns_folder_ = false;
  std::atomic<bool> failing_ = false;
  HostBoard board_;  ///< who of this host says why the run fails, and which phase each worker is in
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<PeerWatch> peers_;
};

}  // namespace psgd
