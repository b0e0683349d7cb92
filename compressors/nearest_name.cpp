#include "compressors/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace psgd {
namespace {

/// Levenshtein distance, upper and lower case alike.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      const std::size_t replaced = diagonal + (same ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name_hint(const std::string& wanted, const std::vector<std::string>& known) {
  if (known.empty()) return "; there are none";
  const auto nearest = std::min_element(
      known.begin(), known.end(),
      [&](const auto& a, const auto& b) { return distance(wanted, a) < distance(wanted, b); });
  std::string hint;
  if (distance(wanted, *nearest) <= std::max<std::size_t>(2, wanted.size() / 2))
    hint = "; did you mean '" + *nearest + "'?";
  hint += hint.empty() ? "; known: " : " Known: ";
  for (std::size_t i = 0; i < known.size(); ++i) hint += (i == 0 ? "" : ", ") + known[i];
  return hint;
}

}  // namespace psgd
