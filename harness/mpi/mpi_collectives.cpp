#include "harness/mpi/mpi_collectives.h"

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <c10/util/SmallVector.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>

#include "harness/error.h"
#include "harness/mpi/half_sum.h"
#include "harness/mpi/mpi_check.h"
#include "harness/mpi/staged_tensor.h"

namespace psgd {
namespace {

/// MPI counts are ints: longer payloads go in pieces.
constexpr std::int64_t kPiece = std::int64_t{1} << 30;

void add_halves_for_mpi(void* in, void* inout, int* length, MPI_Datatype*) {
  add_halves(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(inout), *length);
}

bool mpi_is_cuda_aware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

/// Calls run(byte pointer, count) for pieces that MPI can count. Zero elements: not at all, on any
/// worker.
template <class Run>
void in_pieces(const StagedTensor& values, Run run) {
  for (std::int64_t done = 0; done < values.count(); done += kPiece)
    run(static_cast<char*>(values.data()) + done * values.element_size(),
        static_cast<int>(std::min(kPiece, values.count() - done)));
}

}  // namespace

Wait wait_from(const std::string& text, bool oversubscribed) {
  if (text == "auto") return oversubscribed ? Wait::sleep : Wait::spin;
  for (const Wait wait : {Wait::spin, Wait::yield, Wait::sleep})
    if (name(wait) == text) return wait;
  throw UsageError("wait is '" + text + "', but must be auto, spin, yield or sleep");
}

std::string name(Wait wait) {
  switch (wait) {
    case Wait::spin: return "spin";
    case Wait::yield: return "yield";
    case Wait::sleep: break;
  }
  return "sleep";
}

MpiCollectives::MpiCollectives(MPI_Comm communicator, Wait wait)
    : communicator_(communicator), wait_(wait), cuda_aware_(mpi_is_cuda_aware()) {
  PSGD_MPI(MPI_Comm_rank(communicator_, &worker_));
  PSGD_MPI(MPI_Comm_size(communicator_, &size_));
  PSGD_MPI(MPI_Type_contiguous(2, MPI_BYTE, &half_));
  PSGD_MPI(MPI_Type_commit(&half_));
  PSGD_MPI(MPI_Op_create(&add_halves_for_mpi, /*commute=*/1, &add_halves_));
  if (wait_ == Wait::sleep && size_ > 1) meeting_ = std::make_unique<HostMeeting>(communicator_);
}

MpiCollectives::~MpiCollectives() {
  MPI_Op_free(&add_halves_);
  MPI_Type_free(&half_);
}

MPI_Datatype MpiCollectives::type_of(const at::Tensor& values) const {
  switch (values.scalar_type()) {
    case at::kFloat: return MPI_FLOAT;
    case at::kDouble: return MPI_DOUBLE;
    case at::kHalf: return half_;
    case at::kInt: return MPI_INT32_T;
    case at::kLong: return MPI_INT64_T;
    case at::kByte: return MPI_UINT8_T;
    default: break;
  }
  throw Error(std::string("collectives do not carry elements of type ") +
              c10::toString(values.scalar_type()));
}

MPI_Op MpiCollectives::sum_of(const at::Tensor& values) const {
  return values.scalar_type() == at::kHalf ? add_halves_ : MPI_SUM;
}

void MpiCollectives::count(const at::Tensor& values, Traffic traffic) {
  auto& entry = counts_[static_cast<std::size_t>(traffic)];
  entry.calls += 1;
  entry.bytes += values.numel() * values.element_size();
}

void MpiCollectives::complete(MPI_Request& request) const {
  if (wait_ == Wait::spin) {
    PSGD_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return;
  }
  using namespace std::chrono_literals;
  constexpr int kPollsBeforeSleep = 4;
  auto pause = std::chrono::nanoseconds(50us);
  for (int polls = 0;; ++polls) {
    int done = 0;
    PSGD_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    if (wait_ == Wait::yield || polls < kPollsBeforeSleep) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::nanoseconds(1ms));
    }
  }
}

/// Waits, asleep, until all workers have come to this collective. MPI's blocking collectives have
/// the fastest algorithms but wait by polling, which takes the cores from the workers that are
/// still computing.
void MpiCollectives::meet() {
  if (meeting_) meeting_->meet([this](MPI_Request& request) { complete(request); });
}

void MpiCollectives::all_reduce(at::Tensor& values, Traffic traffic) {
  const std::lock_guard guard(lock_);
  count(values, traffic);
  StagedTensor staged(values, cuda_aware_);
  meet();
  in_pieces(staged, [&](char* data, int elements) {
    PSGD_MPI(MPI_Allreduce(MPI_IN_PLACE, data, elements, type_of(values), sum_of(values),
                           communicator_));
  });
  meet();
  staged.write_back();
}

/// The all-reduce of one tensor, in pieces where it is long. The memory of the last one is kept for
/// the next, so that a step whose collectives are the last step's allocates nothing here.
class MpiCollectives::PendingReduce final : public Request {
 public:
  PendingReduce(MpiCollectives& owner, at::Tensor& values)
      : owner_(owner), staged_(values, owner.cuda_aware_) {
    in_pieces(staged_, [&](char* data, int elements) {
      requests_.push_back(MPI_REQUEST_NULL);
      PSGD_MPI(MPI_Iallreduce(MPI_IN_PLACE, data, elements, owner_.type_of(values),
                              owner_.sum_of(values), owner_.communicator_, &requests_.back()));
    });
  }
  void wait() override {
    const std::lock_guard guard(owner_.lock_);
    for (auto& request : requests_) owner_.complete(request);
    staged_.write_back();
  }

  static void* operator new(std::size_t size) {
    void* const kept = spare_.exchange(nullptr);
    return kept != nullptr ? kept : ::operator new(size);
  }
  static void operator delete(void* memory) { ::operator delete(spare_.exchange(memory)); }

 private:
  static inline std::atomic<void*> spare_ = nullptr;
  MpiCollectives& owner_;
  StagedTensor staged_;
  c10::SmallVector<MPI_Request, 1> requests_;
};

std::unique_ptr<Request> MpiCollectives::start_all_reduce(at::Tensor& values, Traffic traffic) {
  const std::lock_guard guard(lock_);
  count(values, traffic);
  return std::make_unique<PendingReduce>(*this, values);
}

void MpiCollectives::all_gather(const at::Tensor& values, at::Tensor& received, Traffic traffic) {
  TORCH_CHECK(
      received.numel() == size_ * values.numel() && received.scalar_type() == values.scalar_type(),
      "all_gather: received has ", received.numel(), " elements, but ", size_, " x ",
      values.numel(), " of the same type are needed");
  TORCH_CHECK(values.numel() <= std::numeric_limits<int>::max(), "all_gather: too many elements");
  const std::lock_guard guard(lock_);
  count(values, traffic);
  if (values.numel() == 0) return;
  const StagedTensor from(values, cuda_aware_);
  StagedTensor to(received, cuda_aware_);
  meet();
  const int elements = static_cast<int>(values.numel());
  PSGD_MPI(MPI_Allgather(from.data(), elements, type_of(values), to.data(), elements,
                         type_of(values), communicator_));
  meet();
  to.write_back();
}

void MpiCollectives::broadcast(at::Tensor& values, int root, Traffic traffic) {
  const std::lock_guard guard(lock_);
  count(values, traffic);
  StagedTensor staged(values, cuda_aware_);
  meet();
  in_pieces(staged, [&](char* data, int elements) {
    PSGD_MPI(MPI_Bcast(data, elements, type_of(values), root, communicator_));
  });
  meet();
  if (worker_ != root) staged.write_back();
}

void MpiCollectives::barrier() {
  const std::lock_guard guard(lock_);
  if (meeting_) return meet();
  MPI_Request request = MPI_REQUEST_NULL;
  PSGD_MPI(MPI_Ibarrier(communicator_, &request));
  complete(request);
}

void MpiCollectives::broadcast_text(std::string& text, int root) {
  at::Tensor length = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
  broadcast(length, root, Traffic::check);
  text.resize(static_cast<std::size_t>(length.item<std::int64_t>()));
  at::Tensor bytes =
      at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte);
  broadcast(bytes, root, Traffic::check);
}

std::vector<std::string> MpiCollectives::all_gather_text(const std::string& text) {
  std::vector<std::string> texts(static_cast<std::size_t>(size_));
  for (int from = 0; from < size_; ++from) {
    texts[static_cast<std::size_t>(from)] = from == worker_ ? text : std::string();
    broadcast_text(texts[static_cast<std::size_t>(from)], from);
  }
  return texts;
}

}  // namespace psgd
