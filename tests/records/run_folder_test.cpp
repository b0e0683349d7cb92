#include "harness/records/run_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <csignal>
#include <thread>

#include "harness/records/run_reader.h"
#include "tests/config/refusal.h"
#include "tests/records/file_size_limit.h"
#include "tests/records/run_fixture.h"

namespace psgd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(RunFolder, MakesFoldersAboveAndAcceptsAnEmptyOne) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(RunFolder::create(folder.path() / "a" / "b"));
  fs::create_directory(folder.path() / "empty");
  EXPECT_NO_THROW(RunFolder::create(folder.path() / "empty"));
}

TEST(RunFolder, NeverTakesAFolderThatHoldsAnything) {
  const TemporaryFolder folder;
  folder.write("used/notes.txt", "mine");
  expect_refusal<UsageError>([&] { RunFolder::create(folder.path() / "used"); },
                             {"used", "never overwritten"});
  EXPECT_EQ(files_in(folder.path() / "used"), 1u);
  RunFolder::create(folder.path() / "run");
  expect_refusal<UsageError>([&] { RunFolder::create(folder.path() / "run"); },
                             {"run", "--resume"});
  folder.write("file", "");
  expect_refusal<Error>([&] { RunFolder::create(folder.path() / "file"); }, {"file"});
}

TEST(WriteAtomically, OnAFullDiskKeepsTheOldFileAndLeavesNoOther) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.json", "before");
  {
    const FileSizeLimit limit(50);
    expect_refusal<Error>([&] { write_atomically(file, std::string(200, 'x')); },
                          {"a.json", "kept", "File too large"});
    expect_refusal<Error>(
        [&] { write_atomically(folder.path() / "new.json", std::string(200, 'x')); }, {"new.json"});
  }
  EXPECT_EQ(file_text(file), "before");
  EXPECT_EQ(files_in(folder.path()), 1u);  // what was half written does not fill the disk further
  write_atomically(file, "after");
  EXPECT_EQ(file_text(file), "after");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(RunFolder, OfSixteenThreadsExactlyOneGetsIt) {
  const TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const fs::path path = folder.path() / ("run" + std::to_string(round));
    if (round % 2 == 1) fs::create_directory(path);
    std::atomic<int> winners = 0, refused = 0;
    std::barrier together(16);
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i)
      threads.emplace_back([&] {
        together.arrive_and_wait();
        try {
          RunFolder::create(path);
          ++winners;
        } catch (const UsageError&) {
          ++refused;
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(refused, 15);
    EXPECT_EQ(files_in(path), 3u);  // run.json, metrics.jsonl, batches.jsonl: no leftovers
  }
}

TEST(RunFolder, OfSixteenProcessesExactlyOneGetsIt) {
  const TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const fs::path path = folder.path() / ("run" + std::to_string(round));
    std::array<int, 2> start{};
    ASSERT_EQ(::pipe(start.data()), 0);
    std::vector<pid_t> children;
    for (int i = 0; i < 16; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::close(start[1]);
        char byte = 0;
        const bool released = ::read(start[0], &byte, 1) == 0;  // until the parent closes its end
        try {
          RunFolder::create(path);
          ::_exit(released ? 0 : 2);
        } catch (const UsageError&) {
          ::_exit(1);
        } catch (...) {
          ::_exit(2);
        }
      }
      children.push_back(child);
    }
    ::close(start[0]);
    ::close(start[1]);
    std::array<int, 3> ends{};
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      ++ends.at(static_cast<std::size_t>(WIFEXITED(status) ? WEXITSTATUS(status) : 2));
    }
    EXPECT_EQ(ends, (std::array<int, 3>{1, 15, 0}));
  }
}

TEST(RunFolder, RunJsonIsReplacedWholeAndNeverHoldsNan) {
  const TemporaryFolder temporary;
  RunFolder folder = RunFolder::create(temporary.path() / "run");
  folder.write_run({{"schema_version", 1}, {"loss", NAN}});
  EXPECT_EQ(Json::parse(file_text(folder.path() / "run.json"))["loss"], nullptr);
  EXPECT_FALSE(fs::exists(folder.path() / "run.json.tmp"));
  fs::create_directory(folder.path() / "run.json.tmp");  // the temporary cannot be made
  expect_refusal<Error>([&] { folder.write_run({{"schema_version", 2}}); }, {"run.json.tmp"});
  EXPECT_EQ(Json::parse(file_text(folder.path() / "run.json"))["schema_version"], 1);
}

TEST(RunFolder, AReaderSeesTheOldOrTheNewRunJsonOnly) {
  const TemporaryFolder temporary;
  RunFolder folder = RunFolder::create(temporary.path() / "run");
  folder.write_run({{"number", 0}, {"padding", std::string(20000, 'x')}});
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) EXPECT_NO_THROW(Json::parse(file_text(folder.path() / "run.json")).at("number"));
  });
  for (int i = 0; i < 200; ++i)
    folder.write_run({{"number", i}, {"padding", std::string(20000, 'x')}});
  done = true;
  reader.join();
}

TEST(RunFolder, AKillAtAnyMomentLeavesReadableFiles) {
  const TemporaryFolder temporary;
  for (int round = 0; round < 20; ++round) {
    const fs::path path = temporary.path() / ("run" + std::to_string(round));
    const pid_t child = ::fork();
    if (child == 0) {
      RunFixture fixture;
      fixture.name = path.filename().string();
      fixture.epochs = 100000;
      fixture.has_summary = false;
      RunFolder folder = RunFolder::create(path);
      folder.write_run(fixture_record(fixture));
      for (std::int64_t step = 1;; ++step) {
        folder.append_batches({{{"epoch", 1},
                                {"step", step},
                                {"bits", step},
                                {"timed", true},
                                {"microseconds", {{"batch", {1, 2}}}}}});
        folder.append_metrics({{"epoch", step},
                               {"step", step},
                               {"bits", step},
                               {"split", "test"},
                               {"weights", "last"}});
        if (step % 10 == 0) folder.write_run(fixture_record(fixture));
      }
    }
    ::usleep(static_cast<useconds_t>(20000 + 7919 * round % 50000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (!is_run_folder(path)) continue;  // killed before it began
    psgd::Run run;
    ASSERT_NO_THROW(run = read_run(path)) << path;
    EXPECT_LE(std::abs(run.steps - static_cast<std::int64_t>(run.metrics.size())), 1);
    EXPECT_NO_THROW(RunFolder::reopen(path, run.steps));
  }
}

std::vector<std::int64_t> steps_of(const fs::path& file) {
  std::vector<std::string> warnings;
  std::vector<std::int64_t> steps;
  for (const auto& line : read_lines(file, warnings))
    steps.push_back(line["step"].get<std::int64_t>());
  EXPECT_TRUE(warnings.empty());
  return steps;
}

TEST(RunFolder, ReopeningCutsTornLinesAndStepsBehindTheCheckpoint) {
  const TemporaryFolder temporary;
  const fs::path path = temporary.path() / "run";
  write_fixture({}, path);  // 3 epochs of 4 batches
  for (const char* name : {"metrics.jsonl", "batches.jsonl"})
    std::ofstream(path / name, std::ios::app) << "{\"step\": 13, \"ep";
  {
    RunFolder folder = RunFolder::reopen(path, 9);
    EXPECT_EQ(steps_of(path / "batches.jsonl"),
              (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(steps_of(path / "metrics.jsonl"), (std::vector<std::int64_t>{4, 4, 8, 8}));
    folder.append_batches({{{"step", 10}}});
    folder.append_metrics({{"step", 10}});
  }
  EXPECT_EQ(steps_of(path / "batches.jsonl").back(), 10);
  EXPECT_EQ(steps_of(path / "metrics.jsonl").back(), 10);
  RunFolder::reopen(path, 0);
  EXPECT_EQ(fs::file_size(path / "batches.jsonl"), 0u);
}

TEST(RunFolder, ReopeningEndsAWholeLastLineThatLacksItsEnd) {
  const TemporaryFolder temporary;
  const fs::path path = temporary.path() / "run";
  RunFolder::create(path);
  temporary.write("run/batches.jsonl", "{\"step\":1}\n{\"step\":2}");
  RunFolder::reopen(path, 2).append_batches({{{"step", 3}}});
  EXPECT_EQ(file_text(path / "batches.jsonl"), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST(RunFolder, ReopeningNeedsARunAndRefusesDamage) {
  const TemporaryFolder temporary;
  expect_refusal<UsageError>([&] { RunFolder::reopen(temporary.path(), 1); }, {"no run to resume"});
  const fs::path path = temporary.path() / "run";
  RunFolder::create(path);
  temporary.write("run/metrics.jsonl", "{\"epoch\":1}\n");
  expect_refusal<Error>([&] { RunFolder::reopen(path, 1); }, {"metrics.jsonl", "no step"});
  temporary.write("run/metrics.jsonl", "{\"step\":\n{\"step\":1}\n");
  expect_refusal<Error>([&] { RunFolder::reopen(path, 1); }, {"metrics.jsonl, line 1"});
}

}  // namespace
}  // namespace psgd
