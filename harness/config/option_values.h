#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/config/options.h"

namespace psgd {

/// For each type that an option may have: its name in messages, and from JSON with all checks.
/// `where` and `key` only serve the message; assign throws UsageError.

inline std::string type_name(const std::string&) { return "a text"; }
inline std::string type_name(bool) { return "true or false"; }
inline std::string type_name(std::int64_t) { return "a whole number"; }
inline std::string type_name(double) { return "a number"; }
inline std::string type_name(const std::vector<std::int64_t>&) { return "a list of whole numbers"; }
inline std::string type_name(const OptionValues&) {
  return "an object of texts, numbers and true or false";
}

struct Place {
  std::string where;  ///< file or command-line option
  std::string key;
};

void assign(std::string& value, const nlohmann::ordered_json& json, const Limits& limits,
            const Place& place);
void assign(bool& value, const nlohmann::ordered_json& json, const Limits& limits,
            const Place& place);
void assign(std::int64_t& value, const nlohmann::ordered_json& json, const Limits& limits,
            const Place& place);
void assign(double& value, const nlohmann::ordered_json& json, const Limits& limits,
            const Place& place);
void assign(std::vector<std::int64_t>& value, const nlohmann::ordered_json& json,
            const Limits& limits, const Place& place);
/// Lays the object's members over `value`.
void assign(OptionValues& value, const nlohmann::ordered_json& json, const Limits& limits,
            const Place& place);

template <class T>
nlohmann::ordered_json value_to_json(const T& value) {
  return value;
}
nlohmann::ordered_json value_to_json(const OptionValues& values);

/// "1 .. 65536", "cpu, cuda" or empty.
std::string allowed(const Limits& limits);

}  // namespace psgd
