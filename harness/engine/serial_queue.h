#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace psgd {

/// One thread that runs tasks in the order in which they were put in. All collectives of a DDP step
/// go through one: buckets that are in flight together then leave in the same order on every
/// worker.
class SerialQueue {
 public:
  SerialQueue() : thread_([this] { serve(); }) {}
  ~SerialQueue();
  SerialQueue(const SerialQueue&) = delete;
  SerialQueue& operator=(const SerialQueue&) = delete;

  /// Runs `task` after all earlier ones. Tasks must not throw.
  void put(std::function<void()> task);
  /// Returns when all tasks put in so far have run.
  void drain();

 private:
  void serve();

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace psgd
