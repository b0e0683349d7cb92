#include "harness/train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "harness/data/sha256.h"
#include "harness/error.h"
#include "harness/records/run_folder.h"
#include "harness/train/agreement.h"
#include "harness/train/state_file.h"

namespace psgd {
namespace {

constexpr std::size_t kKept = 2;
constexpr const char* kPartial = ".partial";
constexpr const char* kShared = "shared.pt";
constexpr const char* kFormat = "powersgd-bench checkpoint 2";
constexpr const char* kRecords[] = {"metrics.jsonl", "batches.jsonl"};

std::string sha256_of(const std::string& bytes) {
  Sha256 digest;
  digest.add(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return digest.hex();
}

std::string worker_file(int worker) { return "worker-" + std::to_string(worker) + ".pt"; }

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file) bytes << file.rdbuf();
  if (!file) throw Error("checkpoint file " + path.string() + " is missing or cannot be read");
  return std::move(bytes).str();
}

nlohmann::ordered_json read_manifest(const std::filesystem::path& folder) {
  const auto path = folder / "manifest.json";
  const auto manifest =
      nlohmann::ordered_json::parse(read_whole(path), nullptr, /*allow_exceptions=*/false);
  if (manifest.is_discarded() || !manifest.is_object() || manifest.value("format", "") != kFormat)
    throw Error(path.string() + " is damaged or of another version: expected format '" + kFormat +
                "'");
  for (const char* key : {"workers", "shared", "files", "config", "records"})
    if (!manifest.contains(key)) throw Error(path.string() + " is damaged: it lacks '" + key + "'");
  return manifest;
}

std::uintmax_t size_of(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
}

/// Puts `from` in the place of `to`, which may exist: there is never a moment at which neither is
/// there.
void put_in_place(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    std::filesystem::remove_all(from);
  } else {  // nothing there yet, or a file system that cannot exchange
    std::filesystem::remove_all(to);
    std::filesystem::rename(from, to);
  }
  // The new name itself must reach the disk too.
  const int folder = ::open(to.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

/// What the manifest says of a worker's file.
const nlohmann::ordered_json& entry_of(const nlohmann::ordered_json& manifest, int worker) {
  for (const auto& entry : manifest.at("files"))
    if (entry.at("worker") == worker) return entry;
  throw Error("the checkpoint's manifest.json lacks worker " + std::to_string(worker));
}

/// Writes a state; returns what the manifest says of the file.
nlohmann::ordered_json write_state(const std::filesystem::path& path, const State& state) {
  const std::string bytes = pack_state(state);
  write_atomically(path, bytes);
  return {{"bytes", bytes.size()}, {"sha256", sha256_of(bytes)}};
}

/// The state in a file, which must be as long and have the hash that the manifest says.
State read_state(const std::filesystem::path& path, const nlohmann::ordered_json& entry) {
  const std::string bytes = read_whole(path);
  const auto expected = entry.at("bytes").get<std::size_t>();
  if (bytes.size() != expected)
    throw Error("checkpoint file " + path.string() + " has " + std::to_string(bytes.size()) +
                " bytes, but " + std::to_string(expected) +
                " were written; remove its folder to use an earlier checkpoint");
  if (sha256_of(bytes) != entry.at("sha256").get<std::string>())
    throw Error("checkpoint file " + path.string() +
                " is not what was written (another SHA-256); remove its folder to "
                "use an earlier checkpoint");
  try {
    return unpack_state(bytes);
  } catch (const Error& error) {
    throw Error("checkpoint file " + path.string() + ": " + error.what());
  }
}

/// The keys under which all workers hold the same value.
std::set<std::string> shared_keys(const std::map<std::string, std::string>& mine,
                                  MpiCollectives& collectives) {
  std::set<std::string> keys;
  for (const auto& [key, fingerprint] : mine) keys.insert(key);
  for (const auto& text : collectives.all_gather_text(nlohmann::json(mine).dump())) {
    const auto other = nlohmann::json::parse(text).get<std::map<std::string, std::string>>();
    std::erase_if(keys, [&](const std::string& key) {
      const auto found = other.find(key);
      return found == other.end() || found->second != mine.at(key);
    });
  }
  return keys;
}

std::vector<std::int64_t> whole_checkpoints(const std::filesystem::path& root) {
  std::set<std::int64_t> steps;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    const std::string digits = name.rfind("step-", 0) == 0 ? name.substr(5) : std::string();
    if (!digits.empty() && digits.size() < 18 &&
        digits.find_first_not_of("0123456789") == std::string::npos)
      steps.insert(std::stoll(digits));
  }
  return {steps.begin(), steps.end()};
}

}  // namespace

std::string config_differences(const nlohmann::ordered_json& saved,
                               const nlohmann::ordered_json& present) {
  static const std::set<std::string> free = {"name",
                                             "data_dir",
                                             "threads",
                                             "wait",
                                             "device",
                                             "watchdog_seconds",
                                             "check_every",
                                             "checkpoint_every_epochs",
                                             "checkpoint_every_minutes",
                                             "on_divergence",
                                             "save_weights",
                                             "warmup_steps",
                                             "timed_steps"};
  std::string differences;
  const auto compare = [&](const std::string& key) {
    const auto value = [&](const nlohmann::ordered_json& config) {
      return config.contains(key) ? config[key].dump() : std::string("absent");
    };
    if (free.contains(key) || value(saved) == value(present)) return;
    differences += (differences.empty() ? "" : "; ") + key + " is " + value(present) + " here, " +
                   value(saved) + " in the checkpoint";
  };
  for (const auto& [key, value] : present.items()) compare(key);
  for (const auto& [key, value] : saved.items())
    if (!present.contains(key)) compare(key);
  return differences;
}

Checkpoints::Checkpoints(std::filesystem::path run_folder, MpiCollectives& collectives)
    : run_folder_(std::move(run_folder)),
      root_(run_folder_ / "checkpoint"),
      collectives_(collectives) {}

std::filesystem::path Checkpoints::folder(std::int64_t step) const {
  return root_ / ("step-" + std::to_string(step));
}

std::int64_t Checkpoints::newest(const std::filesystem::path& run_folder) {
  const auto steps = whole_checkpoints(run_folder / "checkpoint");
  return steps.empty() ? -1 : steps.back();
}

void Checkpoints::save(std::int64_t step, const nlohmann::ordered_json& config,
                       const VisitState& visit) {
  auto partial = folder(step);
  partial += kPartial;
  try {
    write(step, partial, config, visit);
  } catch (const AgreedError&) {
    // On a full disk the space is needed for better things.
    std::error_code error;
    if (collectives_.worker() == 0) std::filesystem::remove_all(partial, error);
    throw;
  }
}

void Checkpoints::write(std::int64_t step, const std::filesystem::path& partial,
                        const nlohmann::ordered_json& config, const VisitState& visit) {
  const bool leads = collectives_.worker() == 0;
  agree(collectives_, [&] {
    if (!leads) return;
    std::filesystem::remove_all(partial);
    std::filesystem::create_directories(partial);
  });
  std::optional<State> state;
  std::map<std::string, std::string> own_fingerprints;
  agree(collectives_, [&] {
    state = take_state(visit);
    own_fingerprints = fingerprints(*state);
  });
  const auto keys = shared_keys(own_fingerprints, collectives_);
  nlohmann::ordered_json mine;
  nlohmann::ordered_json shared;
  agree(collectives_, [&] {
    const int worker = collectives_.worker();
    mine = write_state(partial / worker_file(worker), part_of_state(*state, keys, /*among=*/false));
    mine["worker"] = worker;
    if (leads) shared = write_state(partial / kShared, part_of_state(*state, keys, /*among=*/true));
  });
  auto files = nlohmann::ordered_json::array();
  for (const auto& text : collectives_.all_gather_text(mine.dump()))
    files.push_back(nlohmann::ordered_json::parse(text));
  agree(collectives_, [&] {
    if (!leads) return;
    nlohmann::ordered_json records;
    for (const char* name : kRecords) records[name] = size_of(run_folder_ / name);
    const nlohmann::ordered_json manifest = {
        {"format", kFormat}, {"step", step},   {"workers", collectives_.size()},
        {"shared", shared},  {"files", files}, {"records", records},
        {"config", config}};
    write_atomically(partial / "manifest.json", manifest.dump(2) + "\n");
    put_in_place(partial, folder(step));
    remove_old(step);
  });
}

void Checkpoints::remove_old(std::int64_t newest_step) const {
  auto steps = whole_checkpoints(root_);
  while (steps.size() > kKept && steps.front() != newest_step) {
    std::filesystem::remove_all(folder(steps.front()));
    steps.erase(steps.begin());
  }
  // What a process left that was killed while it wrote.
  std::vector<std::filesystem::path> partial;
  for (const auto& entry : std::filesystem::directory_iterator(root_))
    if (entry.path().extension() == kPartial) partial.push_back(entry.path());
  for (const auto& path : partial) std::filesystem::remove_all(path);
}

void Checkpoints::load(std::int64_t step, const nlohmann::ordered_json& config,
                       const VisitState& visit) {
  std::optional<State> state;
  agree(collectives_, [&] {
    const auto manifest = read_manifest(folder(step));
    if (const auto workers = manifest.at("workers").get<int>(); workers != collectives_.size())
      throw UsageError("the checkpoint in " + folder(step).string() + " is of " +
                       std::to_string(workers) + " workers, but " +
                       std::to_string(collectives_.size()) + " were started");
    if (const auto differences = config_differences(manifest.at("config"), config);
        !differences.empty())
      throw UsageError("the checkpoint in " + folder(step).string() +
                       " belongs to another configuration: " + differences);
    const int worker = collectives_.worker();
    state = read_state(folder(step) / kShared, manifest.at("shared"));
    for (const auto& item :
         read_state(folder(step) / worker_file(worker), entry_of(manifest, worker)))
      state->insert(item.key(), item.value());
  });
  agree(collectives_, [&] {
    try {
      restore_state(*state, visit);
    } catch (const c10::Error& error) {
      throw Error("the checkpoint in " + folder(step).string() + ": " +
                  error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw Error("the checkpoint in " + folder(step).string() + ": " + error.what());
    }
  });
}

void Checkpoints::cut_records(std::int64_t step) const {
  const auto records = read_manifest(folder(step)).at("records");
  for (const char* name : kRecords)
    if (const auto size = size_of(run_folder_ / name),
        expected = records.at(name).get<std::uintmax_t>();
        size < expected)
      throw Error((run_folder_ / name).string() + " has " + std::to_string(size) + " bytes, but " +
                  std::to_string(expected) + " when the checkpoint of step " +
                  std::to_string(step) + " was written: lines are missing");
  for (const char* name : kRecords)
    if (std::filesystem::exists(run_folder_ / name))
      std::filesystem::resize_file(run_folder_ / name, records.at(name).get<std::uintmax_t>());
}

}  // namespace psgd
