#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/records/run_folder.h"

namespace psgd {

/// What a run of the tests says about itself; the rest is filled in.
struct RunFixture {
  std::string name = "run";
  std::string status = "finished";
  std::string implementation = "PyTorch DDP";
  std::string scheme = "full-precision";
  std::string label = "full precision";
  nlohmann::ordered_json rank = 0;
  std::int64_t n_workers = 16;
  std::int64_t seed = 1;
  int epochs = 3;
  int batches = 4;  ///< per epoch; the first of the run is untimed
  std::int64_t bits_per_step = 1000;
  bool has_summary = true;      ///< whether run.json got its means: not after a kill
  int diverges_in_epoch = 100;  ///< losses from here on are NaN
};

nlohmann::ordered_json fixture_record(const RunFixture& run);

/// Writes a run folder with the program's own writer. Batch b (from 0) of worker w takes 1000 + 10
/// w + b microseconds.
void write_fixture(const RunFixture& run, const std::filesystem::path& folder);

}  // namespace psgd
