#include "tests/support/thread_collectives.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>

namespace psgd::test {
namespace {

/// a += b, for half as Collectives demands it.
void add(at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kHalf) {
    a.add_(b);
    return;
  }
  const at::Tensor exact = a.to(at::kFloat) + b.to(at::kFloat);
  constexpr double largest = 65504;
  // Infinite terms stay infinite; finite ones never become so.
  const at::Tensor saturated =
      at::where(at::isfinite(exact), exact.clamp(-largest, largest), exact);
  a.copy_(saturated);
}

class ThreadRequest : public Request {
 public:
  ThreadRequest(ThreadHub& hub, std::int64_t number, at::Tensor values)
      : hub_(hub), number_(number), values_(std::move(values)) {}

  void wait() override {
    const auto given = hub_.take(number_);
    at::Tensor sum = given[0].clone();
    for (std::size_t w = 1; w < given.size(); ++w) add(sum, given[w]);
    values_.copy_(sum);
  }

 private:
  ThreadHub& hub_;
  std::int64_t number_;
  at::Tensor values_;
};

}  // namespace

void ThreadHub::give(std::int64_t number, int worker, const at::Tensor& values) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[number];
  slot.given.resize(static_cast<std::size_t>(workers_));
  slot.given[static_cast<std::size_t>(worker)] = values.clone();
  ++slot.count;
  changed_.notify_all();
}

std::vector<at::Tensor> ThreadHub::take(std::int64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || slots_[number].count == workers_; });
  if (failed_) throw std::runtime_error("another worker has failed");
  Slot& slot = slots_[number];
  auto given = slot.given;
  for (const auto& tensor : given)
    if (tensor.numel() != given[0].numel() || tensor.scalar_type() != given[0].scalar_type())
      throw std::logic_error("the workers' tensors differ in size or type");
  if (++slot.taken == workers_) slots_.erase(number);
  return given;
}

void ThreadHub::fail() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  changed_.notify_all();
}

std::int64_t ThreadCollectives::give(const at::Tensor& values, Traffic traffic) {
  if (!values.is_contiguous())
    throw std::logic_error("a collective was given a tensor that is not contiguous");
  if (traffic == Traffic::gradient) {
    gradient_bits_ += 8 * values.numel() * static_cast<std::int64_t>(values.element_size());
    ++gradient_calls_;
  }
  hub_.give(next_, worker_, values);
  return next_++;
}

void ThreadCollectives::all_reduce(at::Tensor& values, Traffic traffic) {
  start_all_reduce(values, traffic)->wait();
}

std::unique_ptr<Request> ThreadCollectives::start_all_reduce(at::Tensor& values, Traffic traffic) {
  return std::make_unique<ThreadRequest>(hub_, give(values, traffic), values);
}

void ThreadCollectives::all_gather(const at::Tensor& values, at::Tensor& received,
                                   Traffic traffic) {
  const auto given = hub_.take(give(values, traffic));
  at::Tensor flat = received.view({size(), values.numel()});
  for (std::size_t w = 0; w < given.size(); ++w)
    flat[static_cast<std::int64_t>(w)].copy_(given[w].view({-1}));
}

void ThreadCollectives::broadcast(at::Tensor& values, int root, Traffic traffic) {
  const auto given = hub_.take(give(values, traffic));
  values.copy_(given[static_cast<std::size_t>(root)]);
}

void run_workers(int workers, const std::function<void(ThreadCollectives&)>& body) {
  ThreadHub hub(workers);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([&, w] {
      try {
        ThreadCollectives collectives(hub, w);
        body(collectives);
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
        hub.fail();
      }
    });
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace psgd::test
