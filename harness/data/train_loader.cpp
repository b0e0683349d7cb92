#include <pthread.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "harness/data/batch_writer.h"
#include "harness/data/loader.h"
#include "harness/data/mapped_file.h"
#include "harness/data/sampler.h"

namespace psgd {
namespace {

constexpr std::size_t kAhead = 2;  // batches prepared before they are asked for
constexpr std::size_t kHeld = 2;   // batches that the caller may still be using

/// Batches per epoch; refuses what cannot work.
std::int64_t batches_of(const Dataset& dataset, const LoaderOptions& options) {
  if (options.workers < 1 || options.worker < 0 || options.worker >= options.workers)
    throw std::invalid_argument("worker " + std::to_string(options.worker) + " of " +
                                std::to_string(options.workers) +
                                " does not exist; workers count from 0");
  const auto images = shard_size(dataset.train.count(), options.workers);
  if (options.batch_size < 1 || images < options.batch_size)
    throw std::invalid_argument("batch_size is " + std::to_string(options.batch_size) +
                                ", but each of the " + std::to_string(options.workers) +
                                " workers has " + std::to_string(images) +
                                " training images; it must be 1 to " + std::to_string(images));
  const auto all = images / options.batch_size;
  if (options.batches_per_epoch < 0 || options.batches_per_epoch > all)
    throw std::invalid_argument("batches_per_epoch is " +
                                std::to_string(options.batches_per_epoch) + ", but an epoch has " +
                                std::to_string(all) +
                                " batches; give 0 for all or a smaller number");
  return options.batches_per_epoch > 0 ? options.batches_per_epoch : all;
}

}  // namespace

/// The thread and what it shares. A buffer is always in one of four places: free, being filled,
/// ready, held.
class TrainLoader::Worker {
 public:
  Worker(const Dataset& dataset, const LoaderOptions& options)
      : batches_(batches_of(dataset, options)),
        images_(dataset.train),
        options_(options),
        writer_(dataset, options) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i] = allocate_batch(options.batch_size, options);
      free_.push_back(i);
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_one();
    thread_.join();
  }

  std::int64_t batches() const { return batches_; }

  void start_epoch(int epoch, std::int64_t first_batch) {
    if (first_batch < 0 || first_batch > batches_)
      throw std::invalid_argument("an epoch of " + std::to_string(batches_) +
                                  " batches cannot begin at batch " + std::to_string(first_batch));
    // Here and not on the other thread, where ATen would start a thread pool of its own.
    auto samples = std::make_shared<const std::vector<std::int64_t>>(
        shard(epoch_order(images_.count(), epoch), options_.worker, options_.workers));
    {
      const std::lock_guard lock(mutex_);
      free_.insert(free_.end(), ready_.begin(), ready_.end());
      ready_.clear();
      job_ = {std::move(samples), epoch, first_batch};
      ++generation_;
      taken_ = first_batch;
    }
    work_.notify_one();
  }

  Batch next() {
    std::unique_lock lock(mutex_);
    if (taken_ >= batches_)
      throw std::logic_error("the epoch has no more batches: call start_epoch() first");
    if (held_.size() == kHeld) {
      free_.push_back(held_.front());
      held_.pop_front();
    }
    work_.notify_one();
    done_.wait(lock, [this] { return !ready_.empty() || error_; });
    if (error_) std::rethrow_exception(error_);
    held_.push_back(ready_.front());
    ready_.pop_front();
    work_.notify_one();
    ++taken_;
    return buffers_[held_.back()];
  }

 private:
  struct Job {
    std::shared_ptr<const std::vector<std::int64_t>> samples;
    int epoch = 0;
    std::int64_t batch = 0;  ///< the next to prepare
  };

  void run() {
    block_signals();
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [this] {
        return stop_ || (job_.samples && job_.batch < batches_ && may_prepare());
      });
      if (stop_) return;
      const auto buffer = free_.front();
      free_.pop_front();
      const Job job = job_;
      const auto generation = generation_;
      ++job_.batch;
      lock.unlock();
      const auto error = prepare(job, buffers_[buffer]);
      lock.lock();
      // start_epoch() may have come in between; then nobody wants this batch.
      (generation == generation_ && !error ? ready_ : free_).push_back(buffer);
      if (error) error_ = error;
      done_.notify_one();
      if (error) return;
    }
  }

  bool may_prepare() const { return !free_.empty() && ready_.size() < kAhead; }

  std::exception_ptr prepare(const Job& job, Batch& batch) const {
    try {
      if (options_.before_batch) options_.before_batch(job.epoch, job.batch);
      for (std::int64_t place = 0; place < options_.batch_size; ++place) {
        const auto index = job.batch * options_.batch_size + place;
        const auto position = options_.worker + index * options_.workers;
        const auto crop =
            options_.augment ? random_crop(options_.seed, job.epoch, position) : Crop{};
        writer_.write(images_, (*job.samples)[static_cast<std::size_t>(index)], crop, place, batch);
      }
      check_mapped_files();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  /// Signals that ask the program to end belong to the main thread.
  static void block_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
      sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  }

  const std::int64_t batches_;
  const Images images_;
  const LoaderOptions options_;
  const BatchWriter writer_;
  std::array<Batch, kAhead + kHeld> buffers_;

  std::mutex mutex_;              // guards all below
  std::condition_variable work_;  // something for the thread to do
  std::condition_variable done_;  // a batch is ready, or the thread failed
  std::deque<std::size_t> free_;
  std::deque<std::size_t> ready_;
  std::deque<std::size_t> held_;
  Job job_;
  std::uint64_t generation_ = 0;  // of start_epoch() calls
  std::int64_t taken_ = INT64_MAX;
  bool stop_ = false;
  std::exception_ptr error_;

  std::thread thread_;  // last: it uses all above
};

TrainLoader::TrainLoader(const Dataset& dataset, const LoaderOptions& options)
    : worker_(std::make_unique<Worker>(dataset, options)) {}
TrainLoader::~TrainLoader() = default;
std::int64_t TrainLoader::batches() const { return worker_->batches(); }
void TrainLoader::start_epoch(int epoch, std::int64_t first_batch) {
  worker_->start_epoch(epoch, first_batch);
}
Batch TrainLoader::next() { return worker_->next(); }

}  // namespace psgd
