#pragma once

#include "harness/mpi/mpi_collectives.h"
#include "harness/mpi/session.h"

namespace psgd::test {

/// MPI, for all tests of the program.
MpiSession& session();

/// Collectives among all workers that the launcher started.
MpiCollectives& collectives();

/// Worker w's values for a test: differ in every element and on every worker, in -0.5 .. 0.5.
inline at::Tensor values_of(int worker, std::int64_t elements, at::ScalarType type) {
  const at::Tensor i = at::arange(elements, at::kLong);
  return i.mul(7919)
      .add(104729L * (worker + 1))
      .remainder(10007)
      .to(at::kDouble)
      .div(10007)
      .sub(0.5)
      .to(type);
}

}  // namespace psgd::test
