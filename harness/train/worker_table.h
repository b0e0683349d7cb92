#pragma once

#include <nlohmann/json.hpp>

#include "harness/mpi/mpi_collectives.h"
#include "harness/mpi/session.h"

namespace psgd {

/// Where a worker runs.
struct WorkerPlace {
  std::string host;
  int local_worker = 0;
  std::vector<int> cores;  ///< those that this process may use
  int threads = 1;
  std::string device = "cpu";
};

/// Threads for a worker that was told none: its host's usable cores over the workers there, at
/// least 1.
int default_threads(int local_cores, int local_workers);

/// Whether a host runs more workers than it has usable cores.
bool is_oversubscribed(int local_cores, int local_workers);

/// Everyone's place, in worker order, as run.json's machine.workers.
nlohmann::ordered_json gather_places(MpiCollectives& collectives, const WorkerPlace& mine);

}  // namespace psgd
