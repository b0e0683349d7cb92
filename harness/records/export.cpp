#include "harness/records/export.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/config/strict_json.h"
#include "harness/error.h"
#include "harness/records/run_folder.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// scripts/sweep.py keeps what a dead run left as NAME.failed-1, and its run.json still has the
/// name NAME.
bool is_set_aside(const fs::path& folder) {
  const std::string extension = folder.extension().string();
  const std::string prefix = ".failed-";
  return extension.starts_with(prefix) && extension.size() > prefix.size() &&
         extension.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

/// Run folders at or below `place`, sorted. Does not look inside a run folder.
void find_run_folders(const fs::path& place, std::vector<fs::path>& found,
                      std::vector<std::string>& warnings) {
  if (is_run_folder(place)) {
    found.push_back(place);
    return;
  }
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(place, error), end; !error && entry != end;
       entry.increment(error))
    // Links to folders are not followed: they may lead round in a circle.
    if (entry->is_directory(error) && !entry->is_symlink(error)) folders.push_back(entry->path());
  if (error) throw Error(place.string() + ": the folder cannot be read: " + error.message());
  std::ranges::sort(folders);
  for (const auto& folder : folders) {
    if (is_set_aside(folder) && is_run_folder(folder))
      warnings.push_back(folder.string() + ": set aside by a sweep; left out");
    else
      find_run_folders(folder, found, warnings);
  }
}

std::vector<fs::path> all_run_folders(const std::vector<fs::path>& places,
                                      std::vector<std::string>& warnings) {
  std::vector<fs::path> folders;
  for (const auto& place : places) {
    if (!fs::is_directory(place))
      throw UsageError(place.string() + ": expected a run folder or a folder of them, found " +
                       (fs::exists(place) ? "a file" : "nothing"));
    const std::size_t before = folders.size();
    find_run_folders(place, folders, warnings);
    if (folders.size() == before)
      throw UsageError(place.string() + ": there is no run (no run.json) in or below it");
  }
  // One folder named twice, say directly and by the folder above it, is still one run.
  std::set<fs::path> seen;
  std::erase_if(folders, [&](const fs::path& folder) {
    return !seen.insert(fs::weakly_canonical(folder)).second;
  });
  return folders;
}

void refuse_equal_names(const std::vector<Run>& sorted) {
  const auto twice = std::ranges::adjacent_find(sorted, {}, &Run::name);
  if (twice == sorted.end()) return;
  throw UsageError("two runs have the name '" + twice->name + "': " + twice->folder.string() +
                   " and " + std::next(twice)->folder.string() +
                   "; export them apart, or train one of them under another name");
}

/// The quantities of a metrics line and what the notebook's file calls them.
constexpr std::pair<const char*, const char*> kMeasurements[] = {
    {"accuracy", "accuracy"}, {"loss", "cross_entropy"}, {"top5", "top5_accuracy"}};

/// A loss that is not finite: the weights are worthless, and so is the accuracy that they happen to
/// give.
bool is_diverged(const Json& line) { return line.contains("loss") && !line["loss"].is_number(); }

void add_entries(const Run& run, Json& data) {
  for (const auto& line : run.metrics) {
    if (is_diverged(line)) continue;
    for (const auto& [key, measurement] : kMeasurements) {
      if (!line.contains(key) || !line[key].is_number()) continue;
      data.push_back({{"jobId", run.name},
                      {"measurement", line["weights"].get<std::string>() + "_" + measurement},
                      {"split", line["split"]},
                      {"implementation", run.implementation},
                      {"epoch", line["epoch"]},
                      {"bits", line["bits"]},
                      {"value", line[key]},
                      {"time", line.value("time", Json())}});
    }
  }
}

/// Nested objects become keys with a dot, as in --set; lists become their JSON text: the notebook
/// lists the distinct values of each setting, and two equal lists are distinct to it.
Json flattened(const Json& config) {
  Json flat = Json::object();
  for (const auto& [key, value] : config.items()) {
    if (value.is_object())
      for (const auto& [inner, inner_value] : value.items()) flat[key + "." + inner] = inner_value;
    else if (value.is_array())
      flat[key] = value.dump();
    else
      flat[key] = value;
  }
  return flat;
}

/// What the notebook selects runs by: 0 for no low-rank approximation. A label of another scheme
/// stays a text, so that such a run never passes for full precision.
Json reducer_rank(const Run& run) { return run.rank == "FP16" ? Json(0) : run.rank; }

Json job(const Run& run) {
  const auto recorded = [&](const char* key) { return run.record.value(key, Json()); };
  const Json machine = run.record.value("machine", Json::object());
  return {{"status", run.status},
          {"message", recorded("message")},
          {"started", recorded("started")},
          {"ended", recorded("ended")},
          {"host", machine.is_object() ? machine.value("host", Json()) : Json()},
          {"reduced_size", recorded("reduced_size")}};
}

}  // namespace

std::vector<Run> read_runs(const std::vector<fs::path>& places,
                           std::vector<std::string>& warnings) {
  std::vector<Run> runs;
  for (const auto& folder : all_run_folders(places, warnings)) {
    if (fs::file_size(folder / "run.json") == 0) {
      warnings.push_back(folder.string() +
                         ": run.json is empty: ended before it recorded anything; left out");
      continue;
    }
    Run run = read_run(folder);
    warnings.insert(warnings.end(), run.warnings.begin(), run.warnings.end());
    if (run.config.is_null())
      warnings.push_back(folder.string() + ": ended before it recorded anything; left out");
    else
      runs.push_back(std::move(run));
  }
  std::ranges::stable_sort(runs, {}, &Run::name);
  refuse_equal_names(runs);
  return runs;
}

Json timing_results(const std::vector<Run>& runs) {
  Json array = Json::array();
  for (const auto& run : runs) {
    const bool is_over = run.status == "finished" || run.status == "diverged";
    if (!is_over || !run.batch_seconds) continue;
    array.push_back({{"implementation", run.implementation},
                     {"batchTime", run.batch_seconds->mean},
                     {"n_workers", run.config.value("n_workers", Json())},
                     {"rank", run.rank}});
  }
  return array;
}

Json results(const std::vector<Run>& runs) {
  Json data = Json::array();
  Json jobs = Json::object();
  Json configs = Json::object();
  for (const auto& run : runs) {
    add_entries(run, data);
    jobs[run.name] = job(run);
    Json& config = configs[run.name] = flattened(run.config);
    config["name"] = run.name;
    config["optimizer_reducer_rank"] = reducer_rank(run);
    config["fp16_compression"] = run.rank == "FP16";
    config["label"] = run.label;
  }
  return {{"data", std::move(data)}, {"jobs", std::move(jobs)}, {"configs", std::move(configs)}};
}

void write_export(const std::vector<Run>& runs, const fs::path& folder, bool overwrite) {
  const fs::path timing = folder / "timingResults.json";
  const fs::path all = folder / "results.json";
  for (const auto& file : {timing, all})
    if (!overwrite && fs::exists(file))
      throw UsageError(
          file.string() +
          ": exists already, and results are never overwritten; choose another folder, "
          "or say --force");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder.string() + ": the folder cannot be made: " + error.message());
  const auto text = [](const Json& value) {
    return value.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  };
  write_atomically(timing, text(timing_results(runs)));
  write_atomically(all, text(results(runs)));
}

}  // namespace psgd
