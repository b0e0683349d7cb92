#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

// Apart from scheme.h, so that who only reads configurations needs no tensors.

namespace psgd {

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;
using OptionValues = std::map<std::string, OptionValue>;

/// An option that a scheme takes from `scheme_options` in the configuration.
struct OptionSpec {
  std::string name;
  OptionValue default_value;
  std::string help;
  double minimum = 0;  ///< numbers only, inclusive
  double maximum = 0;  ///< numbers only, inclusive
};

}  // namespace psgd
