#include "harness/engine/serial_queue.h"

namespace psgd {

SerialQueue::~SerialQueue() {
  {
    const std::lock_guard guard(lock_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SerialQueue::put(std::function<void()> task) {
  {
    const std::lock_guard guard(lock_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void SerialQueue::drain() {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [this] { return tasks_.empty() && !busy_; });
}

void SerialQueue::serve() {
  std::unique_lock guard(lock_);
  while (true) {
    changed_.wait(guard, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    guard.unlock();
    task();
    guard.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace psgd
