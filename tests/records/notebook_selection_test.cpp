// Selects runs from the exported files as the notebook does, and expects to find each of them once.

#include <gtest/gtest.h>

#include <set>

#include "harness/records/export.h"
#include "tests/config/refusal.h"
#include "tests/records/run_fixture.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

struct Experiment {
  std::string implementation;
  std::string scheme;
  std::string label;
  Json rank;
  std::int64_t bits_per_step;
};

const std::vector<Experiment> kGrid = {
    {"PyTorch DDP", "full-precision", "full precision", 0, 357566784},
    {"PyTorch DDP", "fp16", "FP16", "FP16", 178783392},
    {"PyTorch DDP", "powersgd", "rank 1", 1, 1469920},
    {"PyTorch DDP", "powersgd", "rank 2", 2, 2632320},
    {"PyTorch DDP", "powersgd", "rank 4", 4, 4957120},
    {"Paper", "full-precision", "full precision", 0, 357566784},
    {"Paper", "powersgd", "rank 1", 1, 1469920},
    {"Paper", "powersgd", "rank 2", 2, 2632320},
    {"Paper", "powersgd", "rank 4", 4, 4957120},
};

class NotebookSelection : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::int64_t seed : {1, 2})
      for (const auto& experiment : kGrid) {
        RunFixture run;
        run.name = experiment.implementation + " " + experiment.label + " " + std::to_string(seed);
        run.implementation = experiment.implementation;
        run.scheme = experiment.scheme;
        run.label = experiment.label;
        run.rank = experiment.rank;
        run.seed = seed;
        run.bits_per_step = experiment.bits_per_step;
        write_fixture(run, folder_.path() / "runs" / run.name);
      }
    std::vector<std::string> warnings;
    write_export(read_runs({folder_.path() / "runs"}, warnings), folder_.path() / "out", false);
    EXPECT_TRUE(warnings.empty());
    timing_ = Json::parse(file_text(folder_.path() / "out" / "timingResults.json"));
    results_ = Json::parse(file_text(folder_.path() / "out" / "results.json"));
  }

  /// An entry with the job's and the configuration's members laid over it, as the notebook's join
  /// does.
  std::vector<Json> joined() const {
    std::vector<Json> rows;
    for (const auto& entry : results_["data"]) {
      Json row = entry;
      const std::string job = entry["jobId"];
      row["job"] = results_["jobs"].at(job);
      row["config"] = results_["configs"].at(job);
      rows.push_back(row);
    }
    return rows;
  }

  /// The plotted series: last test accuracy of one experiment with 16 workers and one seed.
  std::vector<Json> series(const Experiment& experiment, std::int64_t seed) const {
    const bool is_half = experiment.rank == "FP16";
    std::vector<Json> rows;
    for (const auto& row : joined()) {
      const Json& config = row["config"];
      const Json rank = config.value("optimizer_reducer_rank", Json(0));
      if (row["measurement"] == "last_accuracy" && row["split"] == "test" &&
          row["implementation"] == experiment.implementation && config["n_workers"] == 16 &&
          rank == (is_half ? Json(0) : experiment.rank) && config["fp16_compression"] == is_half &&
          config["seed"] == seed)
        rows.push_back(row);
    }
    return rows;
  }

  TemporaryFolder folder_;
  Json timing_, results_;
};

TEST_F(NotebookSelection, TimingResultsHoldEveryRunWithExactlyTheFourMembers) {
  ASSERT_EQ(timing_.size(), 2 * kGrid.size());
  for (const auto& experiment : kGrid) {
    int found = 0;
    for (const auto& entry : timing_) {
      EXPECT_EQ(entry.size(), 4u);
      EXPECT_EQ(entry["n_workers"], 16);
      found +=
          entry["implementation"] == experiment.implementation && entry["rank"] == experiment.rank;
      // Batches 1 .. 11 of workers 0 .. 15 take 1000 + 10 w + b microseconds.
      EXPECT_NEAR(entry["batchTime"].get<double>(), 1e-6 * (1000 + 75 + 6), 1e-12);
    }
    EXPECT_EQ(found, 2) << experiment.implementation << " " << experiment.label;
  }
}

TEST_F(NotebookSelection, EverySeriesHasEachEpochOnceWithNumbers) {
  for (const auto& experiment : kGrid)
    for (const std::int64_t seed : {1, 2}) {
      const auto rows = series(experiment, seed);
      ASSERT_EQ(rows.size(), 3u) << experiment.implementation << " " << experiment.label;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto epoch = static_cast<std::int64_t>(i) + 1;
        EXPECT_EQ(rows[i]["epoch"], epoch);
        EXPECT_DOUBLE_EQ(rows[i]["value"].get<double>(), 0.1 * static_cast<double>(epoch));
        EXPECT_EQ(rows[i]["bits"], experiment.bits_per_step * 4 * epoch);
        EXPECT_TRUE(rows[i]["bits"].is_number_integer());
        EXPECT_TRUE(rows[i]["time"].is_number());
        EXPECT_EQ(rows[i]["job"]["status"], "finished");
      }
    }
}

TEST_F(NotebookSelection, OtherMeasurementsAreNamedAlike) {
  std::set<std::string> measurements;
  for (const auto& entry : results_["data"])
    measurements.insert(entry["measurement"].get<std::string>() + "/" +
                        entry["split"].get<std::string>());
  EXPECT_EQ(measurements,
            (std::set<std::string>{
                "last_accuracy/test", "last_accuracy/train", "last_cross_entropy/test",
                "last_cross_entropy/train", "last_top5_accuracy/test", "last_top5_accuracy/train",
                "runavg_accuracy/test", "runavg_cross_entropy/test", "runavg_top5_accuracy/test"}));
}

TEST_F(NotebookSelection, SettingsAreFlatAndCarryTheSelectionKeys) {
  EXPECT_EQ(results_["configs"].size(), 2 * kGrid.size());
  EXPECT_EQ(results_["jobs"].size(), 2 * kGrid.size());
  for (const auto& [job, config] : results_["configs"].items()) {
    for (const char* key :
         {"n_workers", "optimizer_reducer_rank", "fp16_compression", "seed", "scheme", "label"})
      EXPECT_TRUE(config.contains(key)) << job << " " << key;
    for (const auto& [key, value] : config.items())
      EXPECT_TRUE(value.is_primitive()) << job << " " << key;
    EXPECT_EQ(config["decay_epochs"], "[4,5]");
  }
}

TEST_F(NotebookSelection, TheSameRunsGiveTheSameBytes) {
  std::vector<std::string> warnings;
  const auto runs = folder_.path() / "runs";
  std::vector<std::filesystem::path> backwards;
  for (const auto& entry : std::filesystem::directory_iterator(runs))
    backwards.insert(backwards.begin(), entry.path());
  write_export(read_runs(backwards, warnings), folder_.path() / "again", false);
  for (const char* name : {"timingResults.json", "results.json"})
    EXPECT_EQ(file_text(folder_.path() / "out" / name), file_text(folder_.path() / "again" / name));
}

}  // namespace
}  // namespace psgd
