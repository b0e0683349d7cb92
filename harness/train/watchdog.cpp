#include "harness/train/watchdog.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace psgd {

Watchdog::Watchdog(double limit_seconds, std::function<void(const std::string&)> on_stall, std::function<bool()> waits)
    : limit_(limit_seconds),
      on_stall_(std::move(on_stall)),
      waits_(waits ? std::move(waits) : [] { return false; }),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard guard(lock_);
    ending_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void Watchdog::enter(const char* phase) {
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
    const bool waits = waits_();
    if (waits && Clock::now() - since <= Seconds(2 * limit_)) continue;
    std::ostringstream message;
    message << "no progress for " << (waits ? 2 * limit_ : limit_) << " s"
            << (waits ? ": it waits for another worker, which did not report itself" : "")
            << " (the limit is watchdog_seconds, " << limit_ << ")";
    on_stall_(message.str());
    return;
  }
}

}  // namespace psgd
