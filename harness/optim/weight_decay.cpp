#include "harness/optim/weight_decay.h"

#include <regex>

namespace psgd {

bool has_weight_decay(Implementation implementation, const std::string& parameter) {
  // Python's re.match, which looks at the start only.
  static const std::regex exempt(R"(.*\.bn\d+.(weight|bias))", std::regex::optimize);
  const auto seen_as = implementation == Implementation::ddp ? "module." + parameter : parameter;
  return !std::regex_search(seen_as, exempt, std::regex_constants::match_continuous);
}

}  // namespace psgd
