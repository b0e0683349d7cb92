#pragma once

#include <mpi.h>

namespace psgd {

/// Ends the whole job with MPI's own text, worker, host, file and line. Never returns.
[[noreturn]] void mpi_failed(int code, const char* call, const char* file, int line);

}  // namespace psgd

/// Every MPI call goes through this: errors are never passed over.
#define PSGD_MPI(call)                                              \
  do {                                                              \
    const int psgd_mpi_code = (call);                               \
    if (psgd_mpi_code != MPI_SUCCESS)                               \
      ::psgd::mpi_failed(psgd_mpi_code, #call, __FILE__, __LINE__); \
  } while (false)
