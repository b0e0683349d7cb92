// The readers of our own result files: any three files either are refused with Error or give
// exports that are valid JSON without null values in the data, and --resume leaves files that read
// without a warning. The input is run.json, metrics.jsonl and batches.jsonl, one after another,
// with a 0 byte between them.

#include <array>
#include <cstdint>

#include "harness/error.h"
#include "harness/records/export.h"
#include "harness/records/run_folder.h"
#include "tests/fuzz/fuzz_folder.h"

namespace {

constexpr std::array<const char*, 3> kFiles = {"run.json", "metrics.jsonl", "batches.jsonl"};

void write_files(const psgd::FuzzFolder& folder, std::string_view rest) {
  for (const char* name : kFiles) {
    const auto end = rest.find('\0');
    folder.write(name, rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
}

void export_all(const psgd::FuzzFolder& folder) {
  std::vector<std::string> warnings;
  const auto runs = psgd::read_runs({folder.path()}, warnings);
  const auto results = psgd::results(runs);
  for (const auto& entry : results["data"])
    if (!entry["value"].is_number()) std::abort();
  for (const auto& value : {results, psgd::timing_results(runs)}) {
    const auto text = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (!nlohmann::ordered_json::accept(text)) std::abort();
  }
  psgd::table(runs);
}

void resume(const psgd::FuzzFolder& folder) {
  psgd::RunFolder::reopen(folder.path(), 7);
  for (const char* name : {"metrics.jsonl", "batches.jsonl"}) {
    std::vector<std::string> warnings;
    psgd::read_lines(folder.path() / name, warnings);
    if (!warnings.empty()) std::abort();
  }
}

template <class Action>
void allow_errors(Action&& action) {
  try {
    action();
  } catch (const psgd::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const psgd::FuzzFolder folder("run");
  write_files(folder, {reinterpret_cast<const char*>(data), size});
  allow_errors([&] { export_all(folder); });
  allow_errors([&] { resume(folder); });
  return 0;
}
