#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "compressors/scheme.h"
#include "harness/mpi/mpi_collectives.h"

namespace psgd {

/// Shows an object's state to a visitor; the same function saves and restores.
using VisitState = std::function<void(StateVisitor&)>;

/// Checkpoints of one run, in DIR/checkpoint/step-N/: a file for each worker (a pickled dictionary that Python's
/// torch.load reads) and manifest.json, with sizes and hashes of all of them and the configuration they belong to.
///
/// A checkpoint appears whole or not at all: it is written beside its place, synced, and renamed. The last two are
/// kept. All workers together; the folder must be on a file system that all of them see.
class Checkpoints {
 public:
  Checkpoints(std::filesystem::path run_folder, MpiCollectives& collectives);

  /// Throws AgreedError on all workers if any cannot write; earlier checkpoints then stay.
  void save(std::int64_t step, const nlohmann::ordered_json& config, const VisitState& visit);

  /// The step of the newest whole checkpoint, -1 if there is none. Throws Error for a damaged manifest.
  static std::int64_t newest(const std::filesystem::path& run_folder);

  /// Restores checkpoint `step`. Throws AgreedError on all workers: another number of workers or another
  /// configuration (naming each setting and both values), a file that is missing, cut or changed, or a part of the
  /// state that the file lacks.
  void load(std::int64_t step, const nlohmann::ordered_json& config, const VisitState& visit);

 private:
  std::filesystem::path folder(std::int64_t step) const;
  void remove_old(std::int64_t newest_step) const;

  std::filesystem::path root_;
  MpiCollectives& collectives_;
};

/// Settings that must be the same for a run to go on: all but where data lies, how workers wait, are watched and
/// write. Returns a message naming the settings that differ, with both values; empty if none do.
std::string config_differences(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& present);

}  // namespace psgd
