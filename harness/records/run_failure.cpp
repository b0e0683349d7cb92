#include "harness/records/run_failure.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "harness/records/provenance.h"
#include "harness/records/run_folder.h"

namespace psgd {
namespace {

constexpr std::string_view kEndedByLauncher = "ended by the launcher (SIGTERM)";

bool says_only_that_the_launcher_ended_it(const nlohmann::ordered_json& run) {
  return run.at("status") == "failed" &&
         std::string(run.at("message")).starts_with(kEndedByLauncher);
}

/// `may_replace(run)`: whether what run.json says is to be replaced.
template <class MayReplace>
Marked mark(const std::filesystem::path& folder, const std::string& message,
            MayReplace may_replace) {
  try {
    const RunJsonLock lock(folder);
    std::ifstream file(folder / "run.json");
    auto run = nlohmann::ordered_json::parse(file);
    if (!may_replace(run)) return Marked::before;
    run["status"] = "failed";
    run["message"] = message;
    run["ended"] = utc_now();
    // Under a name of its own: worker 0 may be replacing run.json at this moment.
    const auto aside = folder / "run.json.failed";
    write_atomically(
        aside, run.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    std::filesystem::rename(aside, folder / "run.json");
    return Marked::now;
  } catch (const std::exception&) {
    return Marked::impossible;  // the job is failing already, and its own message is on the way
  }
}

bool is_running(const nlohmann::ordered_json& run) { return run.at("status") == "running"; }

}  // namespace

RunJsonLock::RunJsonLock(const std::filesystem::path& folder)
    : lock_(folder / "metrics.jsonl", FileLock::Mode::wait) {
}  // run.json itself is replaced, not changed

Marked mark_failed(const std::filesystem::path& folder, const std::string& message) {
  return mark(folder, message, [](const auto& run) {
    return is_running(run) || says_only_that_the_launcher_ended_it(run);
  });
}

Marked mark_ended_by_launcher(const std::filesystem::path& folder, const std::string& phase) {
  return mark(folder,
              std::string(kEndedByLauncher) + ", in phase '" + phase +
                  "', with no time for a checkpoint; if a worker of another host died, the "
                  "launcher named it",
              is_running);
}

}  // namespace psgd
