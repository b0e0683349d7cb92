#pragma once

#include <string>
#include <vector>

namespace psgd {

/// For the end of an error message about an unknown name: `; did you mean 'rank'? Known: rank,
/// seed`. Leaves the question out where nothing is near (Levenshtein distance over half the
/// length).
std::string nearest_name_hint(const std::string& wanted, const std::vector<std::string>& known);

}  // namespace psgd
