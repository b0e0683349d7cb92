#include "harness/records/provenance.h"

#include <gtest/gtest.h>

#include <regex>

namespace psgd {
namespace {

TEST(Provenance, BuildIsDescribedInFull) {
  const auto build = build_info();
  for (const char* key :
       {"git_commit", "build_type", "compiler", "libtorch", "mpi", "ucx", "cuda"}) {
    ASSERT_TRUE(build.contains(key)) << key;
    EXPECT_NE(build[key].get<std::string>(), "") << key;
  }
  EXPECT_TRUE(
      std::regex_search(build["libtorch"].get<std::string>(), std::regex("^[0-9]+\\.[0-9]+")));
  EXPECT_TRUE(std::regex_search(build["git_commit"].get<std::string>(),
                                std::regex("^([0-9a-f]{40}|unknown)")));
}

TEST(Provenance, MachineAndTime) {
  const auto machine = machine_info();
  EXPECT_GE(machine["cores"].get<int>(), 1);
  EXPECT_NE(machine["host"], "");
  EXPECT_NE(machine["cpu"], "");
  EXPECT_TRUE(std::regex_match(
      utc_now(), std::regex("20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z")));
}

}  // namespace
}  // namespace psgd
