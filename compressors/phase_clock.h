#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace psgd {

/// The parts of a batch that are timed. One name each, the same in batches.jsonl, run.json and the
/// report.
enum class Phase {
  batch,          ///< forward to optimiser step, as the paper times it (data loading is outside)
  data,           ///< waiting for the loader
  buffers,        ///< PyTorch DDP: broadcast of the BN buffers before the forward pass
  forward,        ///< forward pass and loss
  backward,       ///< backward pass; PyTorch DDP: with the reduction that overlaps it
  wait,           ///< PyTorch DDP: the part of backward after the last bucket was handed over
  reduce,         ///< the scheme's reduce() calls; PyTorch DDP: busy time of the hook's thread
  encode,         ///< within reduce: from gradient and memory to what is sent
  orthogonalise,  ///< within reduce
  collective_gradients,  ///< within reduce: the collective of whole (or sparse) gradients
  collective_p,          ///< within reduce: all-reduce of P
  collective_q,          ///< within reduce: all-reduce of Q
  collective_vectors,    ///< within reduce: all-reduce of what is not compressed
  decode,                ///< within reduce: from what was received to mean gradient and memory
  step,                  ///< optimiser
  running_average,       ///< Paper: running average of the weights
  count_
};

constexpr std::size_t kPhases = static_cast<std::size_t>(Phase::count_);

/// The phase's name in files, e.g. "collective_p".
std::string_view name(Phase phase);

/// Sums the nanoseconds spent in each phase (steady clock). One thread at a time.
class PhaseClock {
 public:
  using Nanoseconds = std::int64_t;

  /// Adds the time from its construction to its end to a phase.
  class Scope {
   public:
    Scope(PhaseClock& clock, Phase phase) : clock_(clock), phase_(phase), start_(now()) {}
    ~Scope() { clock_.add(phase_, now() - start_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    Phase phase_;
    Nanoseconds start_;
  };

  [[nodiscard]] Scope scope(Phase phase) { return Scope(*this, phase); }
  void add(Phase phase, Nanoseconds duration) {
    sums_[static_cast<std::size_t>(phase)] += duration;
  }
  Nanoseconds sum(Phase phase) const { return sums_[static_cast<std::size_t>(phase)]; }
  const std::array<Nanoseconds, kPhases>& sums() const { return sums_; }
  void reset() { sums_.fill(0); }

  static Nanoseconds now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  std::array<Nanoseconds, kPhases> sums_{};
};

}  // namespace psgd
