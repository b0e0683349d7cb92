#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace psgd {

/// Ends a job that stands still. A thread of its own looks whether the worker has reported within
/// the limit; the worker may itself be stuck in a collective or in a kernel.
///
/// When one worker stands still, all others wait for it in a collective. The one to be named is the
/// one that does not wait: a worker inside a collective has twice the limit, so that the other's
/// watchdog speaks first. Only if all wait (a network that lost a message, say) does one of them
/// end the job.
class Watchdog {
 public:
  struct Calls {
    /// Called once, from the watchdog's thread; must end the process.
    std::function<void(const std::string& message)> on_stall;
    /// Whether the worker waits for others at that moment; called from the watchdog's thread.
    std::function<bool()> waits;
    /// Called by enter(), first.
    std::function<void(const char* phase)> on_enter;
  };
  Watchdog(double limit_seconds, Calls calls);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Says what the worker begins now; restarts the clock. `phase` must be a string literal.
  void enter(const char* phase);
  /// What the worker does at present.
  const char* phase() const { return phase_.load(); }

 private:
  void watch();

  double limit_;
  Calls calls_;
  std::atomic<const char*> phase_{"start"};
  std::atomic<std::int64_t> reports_{0};
  std::mutex lock_;
  std::condition_variable end_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace psgd
