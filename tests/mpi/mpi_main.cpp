// The tests' main() under a launcher: every worker runs every test; the program fails on all
// workers if a test failed on any.
#include "tests/mpi/mpi_main.h"

#include <gtest/gtest.h>

#include <iostream>

namespace psgd::test {
namespace {

MpiSession* current_session = nullptr;
MpiCollectives* current_collectives = nullptr;

/// Says which worker a failure is from.
class NameWorker : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) std::cerr << "(on worker " << session().worker() << ")\n";
  }
};

}  // namespace

MpiSession& session() { return *current_session; }

MpiCollectives& collectives() { return *current_collectives; }

}  // namespace psgd::test

int main(int argc, char** argv) {
  psgd::MpiSession session(MPI_THREAD_SERIALIZED);
  psgd::test::current_session = &session;
  psgd::MpiCollectives collectives(
      session.communicator(),
      psgd::wait_from("auto", session.local_workers() > session.local_cores()));
  psgd::test::current_collectives = &collectives;
  testing::InitGoogleTest(&argc, argv);
  torch::set_num_threads(1);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (session.worker() != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new psgd::test::NameWorker);
  int failed = 1;
  try {
    failed = RUN_ALL_TESTS();
  } catch (const std::exception& error) {
    std::cerr << "worker " << session.worker() << ": " << error.what() << '\n';
    psgd::MpiSession::abort(1);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, session.communicator());
  return failed;
}
