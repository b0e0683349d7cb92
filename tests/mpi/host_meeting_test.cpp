#include "harness/mpi/host_meeting.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "harness/mpi/mpi_check.h"
#include "tests/mpi/mpi_main.h"

namespace psgd::test {
namespace {

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void wait_in_mpi(MPI_Request& request) { PSGD_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE)); }

/// Nobody leaves a round before everybody has come to it: the workers share one clock.
void expect_rounds(std::optional<int> pretended_host) {
  HostMeeting meeting(session().communicator(), pretended_host);
  std::srand(static_cast<unsigned>(session().worker()));
  for (int round = 0; round < 200; ++round) {
    // Now one is late, now another, now nobody.
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(std::rand() % 300));
    std::int64_t came = now();
    meeting.meet(&wait_in_mpi);
    std::int64_t left = now();
    PSGD_MPI(MPI_Allreduce(MPI_IN_PLACE, &came, 1, MPI_INT64_T, MPI_MAX, session().communicator()));
    PSGD_MPI(MPI_Allreduce(MPI_IN_PLACE, &left, 1, MPI_INT64_T, MPI_MIN, session().communicator()));
    ASSERT_GE(left, came) << "round " << round;
  }
}

TEST(HostMeeting, HoldsEverybodyOnOneHost) { expect_rounds({}); }

TEST(HostMeeting, HoldsEverybodyOnTwoHosts) { expect_rounds(session().worker() % 2); }

TEST(HostMeeting, HoldsEverybodyWithAHostForEach) { expect_rounds(session().worker()); }

}  // namespace
}  // namespace psgd::test
