#include "harness/train/watchdog.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace psgd {

Watchdog::Watchdog(double limit_seconds, std::function<void(const std::string&)> on_stall)
    : limit_(limit_seconds), on_stall_(std::move(on_stall)), thread_([this] { watch(); }) {}

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
  const std::chrono::duration<double> limit(limit_);
  const std::chrono::duration<double> interval = std::min(limit / 10, std::chrono::duration<double>(1));
  std::unique_lock guard(lock_);
  std::int64_t seen = reports_.load();
  auto since = Clock::now();
  while (!end_.wait_for(guard, interval, [this] { return ending_; })) {
    if (const auto now_seen = reports_.load(); now_seen != seen) {
      seen = now_seen;
      since = Clock::now();
    } else if (Clock::now() - since > limit) {
      std::ostringstream message;
      message << "no progress for " << limit_ << " s in phase '" << phase_.load() << "'";
      on_stall_(message.str());
      return;
    }
  }
}

}  // namespace psgd
