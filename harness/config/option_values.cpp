#include "harness/config/option_values.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "compressors/nearest_name.h"
#include "harness/config/strict_json.h"
#include "harness/error.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
[[noreturn]] void refuse_type(const T& value, const Json& found, const Place& place) {
  throw UsageError(place.where + ": '" + place.key + "' must be " + type_name(value) + ", but is " +
                   shown(found));
}

void check_choice(const std::string& text, const Json& found, const Limits& limits,
                  const Place& place) {
  if (limits.choices.empty() || std::ranges::find(limits.choices, text) != limits.choices.end())
    return;
  throw UsageError(place.where + ": '" + place.key + "' is " + shown(found) +
                   ", which it cannot be" + nearest_name_hint(text, limits.choices));
}

void check_range(double number, const Json& found, const Limits& limits, const Place& place) {
  if (number >= limits.minimum && number <= limits.maximum) return;
  throw UsageError(place.where + ": '" + place.key + "' is " + shown(found) + ", but must lie in " +
                   allowed(limits));
}

bool is_whole_number(const Json& json) {
  if (!json.is_number_integer()) return false;
  return !json.is_number_unsigned() || json.get<std::uint64_t>() <= std::uint64_t{INT64_MAX};
}

OptionValue scheme_option(const Json& json, const Place& place) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return json.get<std::string>();
  if (is_whole_number(json)) return json.get<std::int64_t>();
  if (json.is_number() && std::isfinite(json.get<double>())) return json.get<double>();
  throw UsageError(place.where + ": '" + place.key +
                   "' must be a text, a number, true or false, but is " + shown(json));
}

}  // namespace

void assign(std::string& value, const Json& json, const Limits& limits, const Place& place) {
  if (!json.is_string()) refuse_type(value, json, place);
  const auto& text = json.get_ref<const std::string&>();
  check_choice(text, json, limits, place);
  value = text;
}

void assign(bool& value, const Json& json, const Limits&, const Place& place) {
  if (!json.is_boolean()) refuse_type(value, json, place);
  value = json.get<bool>();
}

void assign(std::int64_t& value, const Json& json, const Limits& limits, const Place& place) {
  if (!json.is_number_integer()) refuse_type(value, json, place);
  check_choice(json.dump(), json, limits, place);
  check_range(json.get<double>(), json, limits, place);
  // In range means exact: every whole-number option has limits, and all of them are far inside
  // int64.
  value = json.get<std::int64_t>();
}

void assign(double& value, const Json& json, const Limits& limits, const Place& place) {
  if (!json.is_number() || !std::isfinite(json.get<double>())) refuse_type(value, json, place);
  check_range(json.get<double>(), json, limits, place);
  value = json.get<double>();
}

void assign(std::vector<std::int64_t>& value, const Json& json, const Limits& limits,
            const Place& place) {
  if (!json.is_array()) refuse_type(value, json, place);
  std::vector<std::int64_t> numbers;
  for (const auto& element : json) {
    if (!element.is_number_integer()) refuse_type(value, json, place);
    assign(numbers.emplace_back(), element, limits, place);
  }
  value = std::move(numbers);
}

void assign(OptionValues& value, const Json& json, const Limits&, const Place& place) {
  if (!json.is_object()) refuse_type(value, json, place);
  for (const auto& [key, member] : json.items())
    value[key] = scheme_option(member, {place.where, place.key + "." + key});
}

Json value_to_json(const OptionValues& values) {
  Json json = Json::object();
  for (const auto& [key, value] : values)
    std::visit([&, &name = key](const auto& v) { json[name] = v; }, value);
  return json;
}

std::string allowed(const Limits& limits) {
  std::ostringstream text;
  text.precision(17);
  for (std::size_t i = 0; i < limits.choices.size(); ++i)
    text << (i == 0 ? "" : ", ") << limits.choices[i];
  if (std::isfinite(limits.minimum) && std::isfinite(limits.maximum))
    text << limits.minimum << " .. " << limits.maximum;
  return text.str();
}

}  // namespace psgd
