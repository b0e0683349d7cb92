#include "harness/train/watchdog.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace psgd {

Watchdog::Watchdog(double limit_seconds, Calls calls)
    : limit_(limit_seconds), calls_(std::move(calls)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard guard(lock_);
    ending_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void Watchdog::enter(const char* phase) {
  calls_.on_enter(phase);
  phase_.store(phase);
  reports_.fetch_add(1);
}

void Watchdog::watch() {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  const Seconds interval = std::min(Seconds(limit_ / 10), Seconds(1));
  std::unique_lock guard(lock_);
  std::int64_t seen = reports_.load();
  auto since = Clock::now();
  while (!end_.wait_for(guard, interval, [this] { return ending_; })) {
    if (const auto now_seen = reports_.load(); now_seen != seen) {
      seen = now_seen;
      since = Clock::now();
      continue;
    }
    if (Clock::now() - since <= Seconds(limit_)) continue;
    const bool waits = calls_.waits();
    if (waits && Clock::now() - since <= Seconds(2 * limit_)) continue;
    std::ostringstream message;
    message << "no progress for " << (waits ? 2 * limit_ : limit_) << " s"
            << (waits ? ": it waits for another worker, which did not report itself" : "")
            << " (the limit is watchdog_seconds, " << limit_ << ")";
    calls_.on_stall(message.str());
    return;
  }
}

}  // namespace psgd
