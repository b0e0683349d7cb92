// The reader of configurations: any text either is refused with UsageError or gives options whose
// dump reads back as the same options. The text is tried as a file and, line by line, as --set
// arguments.

#include <cstdint>
#include <sstream>

#include "harness/config/config_reader.h"
#include "harness/config/strict_json.h"
#include "harness/error.h"
#include "tests/fuzz/fuzz_folder.h"

namespace {

void check_dump(const psgd::Options& options) {
  const auto dump = psgd::to_json(options);
  const std::string text =
      dump.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::strict);
  const auto again = psgd::options_from_json(psgd::parse_json(text, "dump"), "dump");
  if (psgd::to_json(again) != dump) std::abort();
}

template <class Read>
void read_and_check(Read&& read) {
  try {
    check_dump(read());
  } catch (const psgd::UsageError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const psgd::FuzzFolder folder("config");
  const std::string text(reinterpret_cast<const char*>(data), size);
  folder.write("config.json", text);
  read_and_check([&] { return psgd::read_options(folder.path() / "config.json", {}); });

  std::vector<std::string> sets;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) sets.push_back(line);
  read_and_check([&] { return psgd::read_options({}, sets); });
  return 0;
}
