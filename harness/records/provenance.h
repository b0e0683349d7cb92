#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace psgd {

/// What was built, with which versions: {"git_commit", "build_type", "compiler", "libtorch", "mpi",
/// "ucx", "cuda"}. May be called before MPI_Init.
nlohmann::ordered_json build_info();

/// This process's machine: {"host", "cpu", "cores"}; cores are those that this process may use.
nlohmann::ordered_json machine_info();

/// "2026-12-01T02:00:00Z". The wall clock: for a run's start and end only, never for durations.
std::string utc_now();

}  // namespace psgd
