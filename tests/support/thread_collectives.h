#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "compressors/collectives.h"

namespace psgd::test {

/// Where the workers of one process meet. Each collective is a slot, numbered in the order of the
/// calls.
class ThreadHub {
 public:
  explicit ThreadHub(int workers) : workers_(workers) {}

  int workers() const { return workers_; }
  /// Leaves a copy of `values` in slot `number`.
  void give(std::int64_t number, int worker, const at::Tensor& values);
  /// Waits until all have given, then returns their tensors in the workers' order. Once a worker
  /// and slot.
  std::vector<at::Tensor> take(std::int64_t number);
  /// Lets every waiting worker throw: one of them has failed.
  void fail();

 private:
  struct Slot {
    std::vector<at::Tensor> given;
    int count = 0;
    int taken = 0;
  };

  int workers_;
  bool failed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Slot> slots_;
};

/// Collectives among threads of one process. Sums are formed in the workers' order, so they are the
/// same at every run; half sums in float32 with one rounding a step, saturating.
class ThreadCollectives : public Collectives {
 public:
  ThreadCollectives(ThreadHub& hub, int worker) : hub_(hub), worker_(worker) {}

  int worker() const override { return worker_; }
  int size() const override { return hub_.workers(); }
  void all_reduce(at::Tensor& values, Traffic traffic) override;
  std::unique_ptr<Request> start_all_reduce(at::Tensor& values, Traffic traffic) override;
  void all_gather(const at::Tensor& values, at::Tensor& received, Traffic traffic) override;
  void broadcast(at::Tensor& values, int root, Traffic traffic) override;

  /// Bits and calls handed over as gradient traffic so far.
  std::int64_t gradient_bits() const { return gradient_bits_; }
  std::int64_t gradient_calls() const { return gradient_calls_; }

 private:
  std::int64_t give(const at::Tensor& values, Traffic traffic);

  ThreadHub& hub_;
  int worker_;
  std::int64_t next_ = 0;
  std::int64_t gradient_bits_ = 0;
  std::int64_t gradient_calls_ = 0;
};

/// Runs body(collectives) on `workers` threads and joins them. The first exception is thrown again.
void run_workers(int workers, const std::function<void(ThreadCollectives&)>& body);

}  // namespace psgd::test
