#pragma once

#include <functional>
#include <stdexcept>

#include "harness/mpi/mpi_collectives.h"

namespace psgd {

/// An error that all workers know of: each ends with `status`, and worker 0 alone prints the
/// message.
struct AgreedError : std::runtime_error {
  AgreedError(const std::string& message, int exit_status, bool failed_everywhere)
      : std::runtime_error(message), status(exit_status), everywhere(failed_everywhere) {}
  int status;
  bool everywhere;  ///< all workers failed, or what they were told cannot be: not one machine's
                    ///< trouble
};

/// Runs `work` on every worker, then lets all know how it went. If it threw anywhere, all throw the
/// first failing worker's error, with its worker and host unless it is `everywhere`. So a file that
/// one host lacks, say, does not leave the others waiting in a collective. `work` itself must not
/// communicate.
void agree(MpiCollectives& collectives, const std::function<void()>& work);

}  // namespace psgd
