#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "compressors/scheme.h"
#include "harness/mpi/mpi_collectives.h"

namespace psgd {

/// Shows an object's state to a visitor; the same function saves and restores.
using VisitState = std::function<void(StateVisitor&)>;

/// Checkpoints of one run, in DIR/checkpoint/step-N/: shared.pt with what all workers hold alike
/// (weights, momentum, P and Q, ...), worker-K.pt with what worker K alone holds (error memory, its
/// BN statistics, times), each a pickled dictionary that Python's torch.load reads, and
/// manifest.json, with sizes and hashes of all of them, the configuration they belong to, and how
/// long the run's records were: what was written to them later is no part of the run that goes on
/// from here.
///
/// A checkpoint appears whole or not at all: it is written beside its place, synced, and renamed.
/// The last two are kept. All workers together; the folder must be on a file system that all of
/// them see.
class Checkpoints {
 public:
  Checkpoints(std::filesystem::path run_folder, MpiCollectives& collectives);

  /// Throws AgreedError on all workers if any cannot write; earlier checkpoints then stay. The
  /// records' lines of this step and before must be on the disk.
  void save(std::int64_t step, const nlohmann::ordered_json& config, const VisitState& visit);

  /// The step of the newest checkpoint, -1 if there is none. It is whole unless somebody changed
  /// it.
  static std::int64_t newest(const std::filesystem::path& run_folder);

  /// Restores checkpoint `step`. Throws AgreedError on all workers: another number of workers or
  /// another configuration (naming each setting and both values), a file that is missing, cut or
  /// changed, or a part of the state that the file lacks. Changes no file.
  void load(std::int64_t step, const nlohmann::ordered_json& config, const VisitState& visit);

  /// Cuts the run's records to what they were at checkpoint `step`. One worker alone. Throws Error,
  /// changing nothing, where one is shorter: lines are missing.
  void cut_records(std::int64_t step) const;

 private:
  std::filesystem::path folder(std::int64_t step) const;
  void write(std::int64_t step, const std::filesystem::path& partial,
             const nlohmann::ordered_json& config, const VisitState& visit);
  void remove_old(std::int64_t newest_step) const;

  std::filesystem::path run_folder_;
  std::filesystem::path root_;
  MpiCollectives& collectives_;
};

/// Settings that must be the same for a run to go on: all but where data lies, how workers wait,
/// are watched and write. Returns a message naming the settings that differ, with both values;
/// empty if none do.
std::string config_differences(const nlohmann::ordered_json& saved,
                               const nlohmann::ordered_json& present);

}  // namespace psgd
