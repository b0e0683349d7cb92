#include "harness/records/run_reader.h"

#include <algorithm>

#include "harness/config/strict_json.h"
#include "harness/error.h"
#include "harness/records/jsonl.h"
#include "harness/records/run_folder.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kLargestRecord = std::size_t{64} << 20;

[[noreturn]] void refuse(const fs::path& file, const std::string& key, const char* expected,
                         const Json& found) {
  throw Error(file.string() + ": '" + key + "' must be " + expected + ", but is " + shown(found));
}

std::string text_at(const Json& object, const std::string& key, const fs::path& file) {
  const Json& value = object.value(key, Json());
  if (!value.is_string()) refuse(file, key, "a text", value);
  return value.get<std::string>();
}

/// A count, 0 .. 2^63 - 1.
std::int64_t count_at(const Json& object, const std::string& key, const fs::path& file) {
  const Json value = object.value(key, Json());
  const bool fits =
      value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
  if (!fits) refuse(file, key, "a whole number of at least 0", value);
  return value.get<std::int64_t>();
}

void check_schema(const Json& record, const fs::path& file) {
  if (!record.is_object())
    throw Error(file.string() + ": expected a JSON object, found " + shown(record));
  const std::int64_t version = count_at(record, "schema_version", file);
  if (version > kSchemaVersion)
    throw Error(file.string() + ": written by a newer program: its schema_version is " +
                std::to_string(version) + ", this program reads up to " +
                std::to_string(kSchemaVersion) + "; use a newer powersgd-bench");
}

/// Sums the timed batches of batches.jsonl, for runs that never got to write their means.
class BatchTimes {
 public:
  explicit BatchTimes(const fs::path& file) : file_(file) {}

  void add(const Json& line) {
    if (!line.value("timed", Json(true)).is_boolean() || !line.value("timed", true)) return;
    const Json& times = batch_times(line);
    if (sums_.empty()) sums_.resize(times.size());
    if (sums_.size() != times.size())
      refuse(file_, "microseconds.batch", "one number for each worker", times);
    for (std::size_t worker = 0; worker < sums_.size(); ++worker) {
      if (!times[worker].is_number())
        refuse(file_, "microseconds.batch", "a list of numbers", times);
      sums_[worker] += times[worker].get<double>() * 1e-6;
    }
    ++count_;
  }

  std::int64_t count() const { return count_; }

  std::optional<MinMeanMax> seconds() const {
    if (count_ == 0 || sums_.empty()) return std::nullopt;
    const auto batches = static_cast<double>(count_);
    const auto [least, most] = std::ranges::minmax(sums_);
    double total = 0;
    for (const double sum : sums_) total += sum;
    return MinMeanMax{least / batches, total / batches / static_cast<double>(sums_.size()),
                      most / batches};
  }

 private:
  const Json& batch_times(const Json& line) const {
    static const Json nothing;
    const auto found = line.find("microseconds");
    const Json& all = found == line.end() ? nothing : *found;
    if (!all.is_object() || !all.contains("batch") || !all["batch"].is_array())
      refuse(file_, "microseconds", "an object with a list 'batch'", all);
    return all["batch"];
  }

  fs::path file_;
  std::vector<double> sums_;
  std::int64_t count_ = 0;
};

/// The means that the run itself wrote at its end; false where there are none.
bool recorded_times(Run& run, const fs::path& file) {
  const Json& record = run.record;
  if (!record.contains("batch_time") || !record["batch_time"].is_number()) return false;
  run.batches_timed = count_at(record, "batches_timed", file);
  if (run.batches_timed == 0) return true;
  const double mean = record["batch_time"].get<double>();
  run.batch_seconds = MinMeanMax{mean, mean, mean};
  const Json phases = record.value("phases", Json());
  const Json batch = phases.is_object() ? phases.value("batch", Json()) : Json();
  if (!batch.is_object()) return true;
  const auto number_or_mean = [&](const char* key) {
    const Json value = batch.value(key, Json());
    return value.is_number() ? value.get<double>() : mean;
  };
  run.batch_seconds->min = number_or_mean("min");
  run.batch_seconds->max = number_or_mean("max");
  return true;
}

void read_batches(Run& run) {
  const fs::path file = run.folder / "batches.jsonl";
  if (!fs::exists(file)) return;
  if (!recorded_times(run, run.folder / "run.json")) {
    BatchTimes times(file);
    for_each_line(file, run.warnings, [&](const Json& line, std::uint64_t) { times.add(line); });
    run.batch_seconds = times.seconds();
    run.batches_timed = times.count();
  }
  const auto last = read_last_lines(file, 2);
  if (last.empty()) return;
  run.steps = count_at(last.back(), "step", file);
  run.bits = count_at(last.back(), "bits", file);
  if (last.size() == 2) run.bits_last_step = run.bits - count_at(last.front(), "bits", file);
  if (run.steps == 1) run.bits_last_step = run.bits;
}

void read_metrics(Run& run) {
  const fs::path file = run.folder / "metrics.jsonl";
  if (!fs::exists(file)) return;
  for_each_line(file, run.warnings, [&](const Json& line, std::uint64_t) {
    for (const char* key : {"epoch", "bits"}) count_at(line, key, file);
    for (const char* key : {"split", "weights"}) text_at(line, key, file);
    run.metrics.push_back(line);
  });
}

}  // namespace

bool is_run_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "run.json", error);
}

Run read_run(const fs::path& folder) {
  const fs::path file = folder / "run.json";
  Run run;
  run.folder = folder;
  run.record = parse_json(read_text_file(file, kLargestRecord), file.string());
  check_schema(run.record, file);
  run.status = text_at(run.record, "status", file);
  if (!run.record.contains("config")) return run;  // ended before it recorded anything
  run.name = text_at(run.record, "name", file);
  run.implementation = text_at(run.record, "implementation", file);
  run.scheme = text_at(run.record, "scheme", file);
  run.label = text_at(run.record, "label", file);
  run.rank = run.record.value("rank", Json());
  if (!run.rank.is_number() && !run.rank.is_string())
    refuse(file, "rank", "a number or a text", run.rank);
  run.config = run.record["config"];
  if (!run.config.is_object()) refuse(file, "config", "an object", run.config);
  read_metrics(run);
  read_batches(run);
  return run;
}

}  // namespace psgd
