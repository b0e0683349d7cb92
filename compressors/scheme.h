#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compressors/collectives.h"
#include "compressors/phase_clock.h"
#include "compressors/scheme_options.h"

namespace psgd {

/// The two originals. They differ in detail (see README.md), and the harness keeps the differences.
enum class Implementation { ddp, paper };

/// "PyTorch DDP" or "Paper": the spelling of the notebook, used in configs, files and plots alike.
std::string name(Implementation implementation);
/// The reverse; throws std::invalid_argument naming both spellings.
Implementation implementation_from(const std::string& name);

/// The gradients of one reduce() call: one bucket in PyTorch DDP, the whole gradient list in Paper.
struct Bucket {
  /// This worker's gradients, contiguous, each in its parameter's shape. reduce() replaces their
  /// values.
  std::vector<at::Tensor> gradients;
  /// A 1-D view of exactly all gradients' elements in one piece of memory (in any order), or
  /// undefined.
  at::Tensor flat;
  /// Number of the bucket within a step; each has state of its own. Paper: always 0.
  int index = 0;
  /// Whether this is the step's last bucket.
  bool is_last = true;
};

/// Collects or restores what a scheme must keep for a run to go on as if it had not stopped.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual void tensor(const std::string& key, at::Tensor& value) = 0;
  virtual void integer(const std::string& key, std::int64_t& value) = 0;
  virtual void text(const std::string& key, std::string& value) = 0;
};

/// A way to average gradients over the workers.
///
/// reduce() works in place: gradient (plus the scheme's own error memory) in, mean gradient out;
/// the new memory is kept inside. Afterwards all workers hold identical bits. For a scheme with
/// error feedback
///     output + memory after = input + memory before,  on average over the workers.
class Scheme {
 public:
  virtual ~Scheme() = default;

  /// Called once per bucket and step, in the same order on every worker, always by one thread at a
  /// time.
  virtual void reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) = 0;

  /// Error memory of a bucket, one tensor per gradient, in their order and shape; empty if it keeps
  /// none.
  virtual std::vector<at::Tensor> memory(int bucket_index) const {
    (void)bucket_index;
    return {};
  }

  /// Shows every piece of state to `visitor`, which reads it (saving) or replaces it (loading).
  /// When loading, the scheme may not have seen a bucket yet; keys then tell what to create.
  virtual void visit_state(StateVisitor& visitor) { (void)visitor; }

  /// Running totals worth reporting, e.g. "flushed_to_zero"; stored in run.json.
  virtual std::map<std::string, std::int64_t> counters() const { return {}; }
};

// ---- Registry
// -----------------------------------------------------------------------------------------

/// What a scheme's file says about itself. Registering is all it takes to appear in configs, help,
/// sweeps, tables and plots.
struct SchemeEntry {
  std::string name;               ///< as in configs: "powersgd"
  Implementation implementation;  ///< an entry for each of the two that it can run in
  std::string summary;            ///< one line for `list`
  std::vector<OptionSpec> options;
  std::function<std::string(const OptionValues&)> label;  ///< in tables and plots: "rank 2"
  std::function<std::unique_ptr<Scheme>(const OptionValues&)> make;
};

class SchemeRegistry {
 public:
  static SchemeRegistry& instance();

  /// Throws std::logic_error on a second entry with the same name and implementation.
  void add(SchemeEntry entry);
  const std::vector<SchemeEntry>& entries() const { return entries_; }
  /// Throws std::invalid_argument that lists the known names.
  const SchemeEntry& find(Implementation implementation, const std::string& name) const;
  /// All options of `entry` with `given` laid over the defaults. Throws std::invalid_argument for
  /// an unknown name (naming the nearest), a wrong type or a value out of range.
  static OptionValues resolve(const SchemeEntry& entry, const OptionValues& given);

 private:
  std::vector<SchemeEntry> entries_;
};

/// Put one, static, into the scheme's .cpp file.
struct RegisterScheme {
  explicit RegisterScheme(SchemeEntry entry) { SchemeRegistry::instance().add(std::move(entry)); }
};

}  // namespace psgd
