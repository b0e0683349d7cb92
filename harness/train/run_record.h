#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/config/options.h"
#include "harness/data/dataset.h"
#include "harness/mpi/mpi_collectives.h"
#include "harness/mpi/session.h"

namespace psgd {

/// run.json as it stands when a run begins: everything but what training adds. `machine`: see
/// describe_machine().
nlohmann::ordered_json begin_run_record(const Options& options, const Dataset& dataset,
                                        const std::vector<std::string>& command_line,
                                        const nlohmann::ordered_json& machine);

/// run.json's "machine". All workers together.
nlohmann::ordered_json describe_machine(const MpiSession& session, MpiCollectives& collectives,
                                        int threads, const std::string& device,
                                        bool oversubscribed);

/// Whether anything is smaller than in the notebook's experiments (16 workers, full ResNet-18,
/// batch 128, 300 epochs, all images).
bool is_reduced_size(const Options& options);

/// What plots and tables call the scheme: "full precision", "FP16", "rank 2", ...
std::string scheme_label(const Options& options);
/// `rank` as in timingResults.json: 0 for full precision, the matrix rank, or the label.
nlohmann::ordered_json scheme_rank(const Options& options);

}  // namespace psgd
