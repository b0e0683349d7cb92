#pragma once

#include <ATen/ATen.h>

#include <memory>

namespace psgd {

/// What a payload is for. Only `gradient` counts towards the reported bits.
enum class Traffic { gradient, buffer, metric, check, count_ };

/// A collective that has been started. `wait()` must be called once, before the tensors are read.
class Request {
 public:
  virtual ~Request() = default;
  virtual void wait() = 0;
};

/// The collectives a scheme may use, on tensors, among all workers of the run.
///
/// Every worker calls the same functions in the same order with the same shapes and types. Tensors
/// are contiguous. Element types: float32, float64, float16 (sums are formed in float32, rounded
/// once a step and never become infinite from finite terms), int32, int64; uint8 for all_gather and
/// broadcast. Zero elements are allowed. Errors end the job with a message (they are never
/// returned).
class Collectives {
 public:
  virtual ~Collectives() = default;

  /// This worker's number, 0 .. size() - 1.
  virtual int worker() const = 0;
  /// The number of workers.
  virtual int size() const = 0;

  /// Replaces `values` by its sum over the workers; the same bits on every worker.
  virtual void all_reduce(at::Tensor& values, Traffic traffic) = 0;
  /// The same, started only. `values` must live, untouched, until wait().
  virtual std::unique_ptr<Request> start_all_reduce(at::Tensor& values, Traffic traffic) = 0;
  /// received[w] = worker w's `values`; received has size() * values.numel() elements of the same
  /// type.
  virtual void all_gather(const at::Tensor& values, at::Tensor& received, Traffic traffic) = 0;
  /// Replaces `values` by worker `root`'s.
  virtual void broadcast(at::Tensor& values, int root, Traffic traffic) = 0;
};

}  // namespace psgd
