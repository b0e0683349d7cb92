#include "harness/train/checkpoint.h"

#include <fstream>
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
constexpr const char* kFormat = "powersgd-bench checkpoint 1";

std::string sha256_of(const std::string& bytes) {
  Sha256 digest;
  digest.add(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return digest.hex();
}

std::string worker_file(int worker) { return "worker-" + std::to_string(worker) + ".pt"; }

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) throw Error("checkpoint file " + path.string() + " is missing or cannot be read");
  return std::move(bytes).str();
}

nlohmann::ordered_json read_manifest(const std::filesystem::path& folder) {
  const auto path = folder / "manifest.json";
  const auto manifest = nlohmann::ordered_json::parse(read_whole(path), nullptr, /*allow_exceptions=*/false);
  if (manifest.is_discarded() || !manifest.is_object() || manifest.value("format", "") != kFormat)
    throw Error(path.string() + " is damaged or of another version: expected format '" + kFormat + "'");
  return manifest;
}

/// The bytes of this worker's file, as long and with the hash that the manifest says.
std::string read_checked(const std::filesystem::path& path, const nlohmann::ordered_json& entry) {
  std::string bytes = read_whole(path);
  const auto expected = entry.at("bytes").get<std::size_t>();
  if (bytes.size() != expected)
    throw Error("checkpoint file " + path.string() + " has " + std::to_string(bytes.size()) + " bytes, but " +
                std::to_string(expected) + " were written: it was cut; remove its folder to use an earlier checkpoint");
  if (sha256_of(bytes) != entry.at("sha256"))
    throw Error("checkpoint file " + path.string() + " is not what was written (another SHA-256); remove its folder to "
                "use an earlier checkpoint");
  return bytes;
}

std::vector<std::int64_t> whole_checkpoints(const std::filesystem::path& root) {
  std::set<std::int64_t> steps;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    const std::string digits = name.rfind("step-", 0) == 0 ? name.substr(5) : std::string();
    if (!digits.empty() && digits.size() < 18 && digits.find_first_not_of("0123456789") == std::string::npos)
      steps.insert(std::stoll(digits));
  }
  return {steps.begin(), steps.end()};
}

}  // namespace

std::string config_differences(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& present) {
  static const std::set<std::string> free = {"name", "data_dir", "threads", "wait", "device", "watchdog_seconds",
                                             "check_every", "checkpoint_every_epochs", "checkpoint_every_minutes",
                                             "on_divergence", "save_weights", "warmup_steps", "timed_steps"};
  std::string differences;
  const auto compare = [&](const std::string& key) {
    const auto value = [&](const nlohmann::ordered_json& config) {
      return config.contains(key) ? config[key].dump() : std::string("absent");
    };
    if (free.contains(key) || value(saved) == value(present)) return;
    differences += (differences.empty() ? "" : "; ") + key + " is " + value(present) + " here, " + value(saved) +
                   " in the checkpoint";
  };
  for (const auto& [key, value] : present.items()) compare(key);
  for (const auto& [key, value] : saved.items())
    if (!present.contains(key)) compare(key);
  return differences;
}

Checkpoints::Checkpoints(std::filesystem::path run_folder, MpiCollectives& collectives)
    : root_(std::move(run_folder) / "checkpoint"), collectives_(collectives) {}

std::filesystem::path Checkpoints::folder(std::int64_t step) const { return root_ / ("step-" + std::to_string(step)); }

std::int64_t Checkpoints::newest(const std::filesystem::path& run_folder) {
  const auto steps = whole_checkpoints(run_folder / "checkpoint");
  return steps.empty() ? -1 : steps.back();
}

void Checkpoints::save(std::int64_t step, const nlohmann::ordered_json& config, const VisitState& visit) {
  const bool leads = collectives_.worker() == 0;
  auto partial = folder(step);
  partial += ".partial";
  agree(collectives_, [&] {
    if (!leads) return;
    std::filesystem::remove_all(partial);
    std::filesystem::create_directories(partial);
  });
  nlohmann::ordered_json mine;
  agree(collectives_, [&] {
    const std::string bytes = pack_state(visit);
    write_atomically(partial / worker_file(collectives_.worker()), bytes);
    mine = {{"worker", collectives_.worker()}, {"bytes", bytes.size()}, {"sha256", sha256_of(bytes)}};
  });
  auto files = nlohmann::ordered_json::array();
  for (const auto& text : collectives_.all_gather_text(mine.dump()))
    files.push_back(nlohmann::ordered_json::parse(text));
  agree(collectives_, [&] {
    if (!leads) return;
    const nlohmann::ordered_json manifest = {{"format", kFormat}, {"step", step}, {"workers", collectives_.size()},
                                             {"files", files}, {"config", config}};
    write_atomically(partial / "manifest.json", manifest.dump(2) + "\n");
    std::filesystem::remove_all(folder(step));
    std::filesystem::rename(partial, folder(step));
    remove_old(step);
  });
}

void Checkpoints::remove_old(std::int64_t newest_step) const {
  auto steps = whole_checkpoints(root_);
  while (steps.size() > kKept && steps.front() != newest_step) {
    std::filesystem::remove_all(folder(steps.front()));
    steps.erase(steps.begin());
  }
}

void Checkpoints::load(std::int64_t step, const nlohmann::ordered_json& config, const VisitState& visit) {
  std::string bytes;
  agree(collectives_, [&] {
    const auto manifest = read_manifest(folder(step));
    if (const auto workers = manifest.at("workers").get<int>(); workers != collectives_.size())
      throw UsageError("the checkpoint in " + folder(step).string() + " is of " + std::to_string(workers) +
                       " workers, but " + std::to_string(collectives_.size()) + " were started");
    if (const auto differences = config_differences(manifest.at("config"), config); !differences.empty())
      throw UsageError("the checkpoint in " + folder(step).string() + " belongs to another configuration: " + differences);
    bytes = read_checked(folder(step) / worker_file(collectives_.worker()),
                         manifest.at("files").at(static_cast<std::size_t>(collectives_.worker())));
  });
  agree(collectives_, [&] { unpack_state(bytes, visit); });
}

}  // namespace psgd
