#include "harness/mpi/host_board.h"

#include <gtest/gtest.h>

#include <string>

#include "harness/mpi/mpi_check.h"
#include "tests/mpi/mpi_main.h"

namespace psgd::test {
namespace {

TEST(HostBoard, OneWorkerOfTheHostTakesTheWord) {
  for (int round = 0; round < 50; ++round) {
    HostBoard board(session().communicator());
    int first = board.take_the_word() ? 1 : 0;
    EXPECT_FALSE(board.take_the_word());
    PSGD_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_SUM, session().communicator()));
    EXPECT_EQ(first, 1) << "round " << round;
  }
}

TEST(HostBoard, EveryoneReadsEveryonesLastNote) {
  HostBoard board(session().communicator());
  const auto text = [](int worker, int number) {
    return "note " + std::to_string(number) + " of worker " + std::to_string(worker);
  };
  for (int worker = 0; worker < session().workers(); ++worker) EXPECT_EQ(board.note_of(worker), "");
  for (int number = 1; number <= 5; ++number) {
    PSGD_MPI(MPI_Barrier(session().communicator()));
    board.note(text(session().worker(), number).c_str());
    PSGD_MPI(MPI_Barrier(session().communicator()));
    for (int worker = 0; worker < session().workers(); ++worker)
      EXPECT_EQ(board.note_of(worker), text(worker, number));
  }
}

TEST(HostBoard, CutsALongNote) {
  HostBoard board(session().communicator());
  const std::string text(100, 'x');
  board.note(text.c_str());
  EXPECT_EQ(board.note_of(session().worker()), text.substr(0, 31));
}

}  // namespace
}  // namespace psgd::test
