#include "harness/records/run_failure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "harness/records/run_folder.h"
#include "tests/config/refusal.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

class RunFailure : public ::testing::Test {
 protected:
  void say(const char* status) {
    folder_.write_run({{"schema_version", 1}, {"status", status}, {"message", ""}});
  }
  Json said() const { return Json::parse(std::ifstream(path() / "run.json")); }
  std::string message() const { return said().at("message"); }
  std::filesystem::path path() const { return temporary_.path() / "run"; }

  TemporaryFolder temporary_;
  RunFolder folder_ = RunFolder::create(path());
};

TEST_F(RunFailure, TheFirstReasonStays) {
  say("running");
  EXPECT_EQ(mark_failed(path(), "first"), Marked::now);
  EXPECT_EQ(mark_failed(path(), "second"), Marked::before);
  EXPECT_EQ(mark_ended_by_launcher(path(), "test"), Marked::before);
  EXPECT_EQ(message(), "first");
  EXPECT_EQ(said().at("status"), "failed");
  EXPECT_TRUE(said().at("ended").is_string());
}

TEST_F(RunFailure, AReasonReplacesThatTheLauncherEndedTheJob) {
  say("running");
  EXPECT_EQ(mark_ended_by_launcher(path(), "data"), Marked::now);
  EXPECT_EQ(mark_ended_by_launcher(path(), "test"), Marked::before);
  EXPECT_TRUE(message().starts_with("ended by the launcher (SIGTERM), in phase 'data'"))
      << message();
  EXPECT_EQ(mark_failed(path(), "why"), Marked::now);
  EXPECT_EQ(message(), "why");
}

TEST_F(RunFailure, ARunThatEndedOtherwiseIsLeftAlone) {
  for (const char* status : {"finished", "interrupted", "diverged"}) {
    say(status);
    EXPECT_EQ(mark_failed(path(), "why"), Marked::before);
    EXPECT_EQ(mark_ended_by_launcher(path(), "test"), Marked::before);
    EXPECT_EQ(said().at("status"), status);
  }
}

TEST_F(RunFailure, OfManyAtOnceOneIsFirst) {
  for (int round = 0; round < 20; ++round) {
    say("running");
    std::atomic<int> first = -1, firsts = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        if (mark_failed(path(), std::to_string(i)) != Marked::now) return;
        first = i;
        ++firsts;
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(firsts, 1);
    EXPECT_EQ(message(), std::to_string(first));
  }
}

TEST_F(RunFailure, WaitsWhileWorker0SaysHowTheRunEnded) {
  say("running");
  std::thread other;
  {
    const RunJsonLock lock(path());
    other = std::thread([&] { EXPECT_EQ(mark_ended_by_launcher(path(), "test"), Marked::before); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(said().at("status"), "running");
    say("interrupted");
  }
  other.join();
  EXPECT_EQ(said().at("status"), "interrupted");
}

TEST_F(RunFailure, AFolderThatIsGoneIsNoEnd) {
  EXPECT_EQ(mark_failed(temporary_.path() / "none", "why"), Marked::impossible);
}

}  // namespace
}  // namespace psgd
