#include "harness/records/export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/config/refusal.h"
#include "tests/records/run_fixture.h"

namespace psgd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class Export : public testing::Test {
 protected:
  void add(const RunFixture& run) const { write_fixture(run, folder_.path() / "runs" / run.name); }
  void change_record(const std::string& name, const std::string& key, const Json& value) const {
    const auto file = folder_.path() / "runs" / name / "run.json";
    Json record = Json::parse(file_text(file));
    record[key] = value;
    write_atomically(file, record.dump());
  }
  std::vector<psgd::Run> runs() { return read_runs({folder_.path() / "runs"}, warnings_); }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

std::size_t entries_of(const Json& results, const std::string& name) {
  std::size_t count = 0;
  for (const auto& entry : results["data"]) count += entry["jobId"] == name;
  return count;
}

TEST_F(Export, RefusesPlacesWithoutRuns) {
  fs::create_directory(folder_.path() / "empty");
  folder_.write("file", "");
  const auto read = [&](const char* name) { read_runs({folder_.path() / name}, warnings_); };
  expect_refusal<UsageError>([&] { read("empty"); }, {"empty", "no run"});
  expect_refusal<UsageError>([&] { read("none"); }, {"none", "nothing"});
  expect_refusal<UsageError>([&] { read("file"); }, {"file", "found a file"});
}

TEST_F(Export, RefusesANewerSchemaAndNamesBothVersions) {
  add({});
  change_record("run", "schema_version", 2);
  expect_refusal<Error>([&] { runs(); }, {"run.json", "newer", " 2,", "up to 1"});
  for (const Json& version : {Json("1"), Json(-1), Json(), Json(1.5)}) {
    change_record("run", "schema_version", version);
    expect_refusal<Error>([&] { runs(); }, {"run.json", "'schema_version' must be"});
  }
}

TEST_F(Export, RefusesTwoRunsOfOneNameAndNamesBothFolders) {
  add({});
  write_fixture({}, folder_.path() / "runs" / "other");
  expect_refusal<UsageError>([&] { runs(); }, {"'run'", "runs/other", "runs/run"});
}

TEST_F(Export, ANamedFolderInsideANamedFolderIsOneRun) {
  add({});
  EXPECT_EQ(read_runs({folder_.path() / "runs", folder_.path() / "runs" / "run"}, warnings_).size(),
            1u);
}

TEST_F(Export, LeavesOutWhatASweepSetAside) {
  add({});
  write_fixture({.status = "failed"}, folder_.path() / "runs" / "run.failed-1");
  const auto found = runs();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].status, "finished");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("run.failed-1"), std::string::npos);
  EXPECT_EQ(read_runs({folder_.path() / "runs" / "run.failed-1"}, warnings_).size(),
            1u);  // asked for by name
}

TEST_F(Export, NeverOverwritesUnlessForced) {
  add({});
  const auto found = runs();
  const auto out = folder_.path() / "out";
  write_export(found, out, false);
  folder_.write("out/timingResults.json", "mine");
  expect_refusal<UsageError>([&] { write_export(found, out, false); },
                             {"timingResults.json", "--force"});
  fs::remove(out / "timingResults.json");
  expect_refusal<UsageError>([&] { write_export(found, out, false); }, {"results.json", "--force"});
  EXPECT_FALSE(fs::exists(out / "timingResults.json"));
  write_export(found, out, true);
  EXPECT_EQ(Json::parse(file_text(out / "timingResults.json")).size(), 1u);
}

TEST_F(Export, ADivergedRunHasGapsAndValidJson) {
  add({.status = "diverged", .diverges_in_epoch = 2});
  const auto found = runs();
  const Json all = results(found);
  EXPECT_EQ(entries_of(all, "run"), 6u);  // epoch 1: three quantities, train and test
  for (const auto& entry : all["data"]) {
    EXPECT_EQ(entry["epoch"], 1);
    EXPECT_TRUE(entry["value"].is_number());
  }
  EXPECT_EQ(all["jobs"]["run"]["status"], "diverged");
  EXPECT_TRUE(Json::accept(all.dump()));
  EXPECT_EQ(timing_results(found).size(), 1u);
  EXPECT_NE(table(found).find("diverged: run"), std::string::npos);
  EXPECT_EQ(table(found).find("30.00 %"),
            std::string::npos);  // the accuracy of NaN weights is none
}

TEST_F(Export, AnUnfinishedRunCountsForAccuracyNotForTime) {
  add({.status = "running", .has_summary = false});
  const auto found = runs();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].batches_timed, 11);
  EXPECT_NEAR(found[0].batch_seconds->mean, 1e-6 * (1000 + 75 + 6), 1e-12);
  EXPECT_NEAR(found[0].batch_seconds->min, 1e-6 * (1000 + 6), 1e-12);
  EXPECT_NEAR(found[0].batch_seconds->max, 1e-6 * (1000 + 150 + 6), 1e-12);
  EXPECT_TRUE(timing_results(found).empty());
  EXPECT_EQ(entries_of(results(found), "run"), 18u);
  EXPECT_NE(table(found).find("unfinished (running after epoch 3): run"), std::string::npos)
      << table(found);
}

TEST_F(Export, MeansInRunJsonAgreeWithTheSamples) {
  add({});
  const psgd::Run recorded = runs().at(0);
  change_record("run", "batch_time", nullptr);
  const psgd::Run recomputed = runs().at(0);
  EXPECT_NEAR(recorded.batch_seconds->min, recomputed.batch_seconds->min, 1e-12);
  EXPECT_NEAR(recorded.batch_seconds->mean, recomputed.batch_seconds->mean, 1e-12);
  EXPECT_NEAR(recorded.batch_seconds->max, recomputed.batch_seconds->max, 1e-12);
  EXPECT_EQ(recorded.batches_timed, recomputed.batches_timed);
}

TEST_F(Export, TornLinesCostNothingElse) {
  add({});
  for (const char* name : {"metrics.jsonl", "batches.jsonl"})
    std::ofstream(folder_.path() / "runs" / "run" / name, std::ios::app) << "{\"epoch\": 4, \"st";
  const auto found = runs();
  EXPECT_EQ(entries_of(results(found), "run"), 18u);
  EXPECT_EQ(found[0].bits_last_step, 1000);
  ASSERT_EQ(warnings_.size(), 1u);  // batches.jsonl is only looked at from its end
  EXPECT_NE(warnings_[0].find("metrics.jsonl, line 7"), std::string::npos);
}

TEST_F(Export, RunsThatNeverBeganAreLeftOutWithAWarning) {
  add({});
  RunFolder::create(folder_.path() / "runs" / "begun");
  folder_.write("runs/empty/run.json", "");
  EXPECT_EQ(runs().size(), 1u);
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_NE(warnings_[0].find("begun"), std::string::npos);
  EXPECT_NE(warnings_[1].find("empty"), std::string::npos);
}

TEST_F(Export, RefusesDamage) {
  add({});
  for (const char* key :
       {"status", "name", "implementation", "scheme", "label", "rank", "config"}) {
    const Json before = Json::parse(file_text(folder_.path() / "runs/run/run.json"))[key];
    change_record("run", key, Json::array());
    expect_refusal<Error>([&] { runs(); }, {"run.json", key, "must be"});
    change_record("run", key, before);
  }
  EXPECT_NO_THROW(runs());
  const std::string metrics = file_text(folder_.path() / "runs/run/metrics.jsonl");
  folder_.write("runs/run/metrics.jsonl", "{\"epoch\": -1}\n" + metrics);
  expect_refusal<Error>([&] { runs(); }, {"metrics.jsonl", "'epoch'"});
  folder_.write("runs/run/metrics.jsonl", metrics);
  folder_.write("runs/run/run.json", "{\"schema_version\": 1,");
  expect_refusal<Error>([&] { runs(); }, {"run.json", "line 1"});
}

TEST_F(Export, AnotherSchemeNeverPassesForFullPrecision) {
  add({.scheme = "top-k", .label = "top 1 %", .rank = "top 1 %"});
  const Json config = results(runs())["configs"]["run"];
  EXPECT_EQ(config["optimizer_reducer_rank"], "top 1 %");
  EXPECT_EQ(config["fp16_compression"], false);
}

TEST_F(Export, TheTableCombinesSeedsAndKeepsTheNotebooksOrder) {
  add({.name = "p0", .implementation = "Paper"});
  add({.name = "d4", .scheme = "powersgd", .label = "rank 4", .rank = 4});
  add({.name = "d4b", .scheme = "powersgd", .label = "rank 4", .rank = 4, .seed = 2, .epochs = 3});
  add({.name = "d16", .scheme = "fp16", .label = "FP16", .rank = "FP16"});
  add({.name = "d0"});
  const std::string text = table(runs());
  std::vector<std::size_t> places;
  for (const char* row : {"\nPyTorch DDP     full precision", "\nPyTorch DDP     FP16",
                          "\nPyTorch DDP     rank 4", "\nPaper           full precision"}) {
    places.push_back(text.find(row));
    EXPECT_NE(places.back(), std::string::npos) << row << " not in\n" << text;
  }
  EXPECT_TRUE(std::ranges::is_sorted(places)) << text;
  EXPECT_NE(text.find("30.00 % (30.00..30.00, 2 seeds)"), std::string::npos) << text;
  EXPECT_NE(text.find("1.1 ms (1.0..1.2)"), std::string::npos) << text;
  EXPECT_NE(text.find("1000 "), std::string::npos) << text;
  EXPECT_NE(text.find("12000 "), std::string::npos) << text;
  EXPECT_NE(text.find("cifar10-jpeg; oversubscribed; reduced size"), std::string::npos) << text;
}

}  // namespace
}  // namespace psgd
