#include "compressors/scheme.h"

#include <stdexcept>

#include "compressors/nearest_name.h"

namespace psgd {
namespace {

std::string type_name(const OptionValue& value) {
  static const char* const names[] = {"true or false", "a whole number", "a number", "a text"};
  return names[value.index()];
}

double as_number(const OptionValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

bool is_number(const OptionValue& value) {
  return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

OptionValue checked(const SchemeEntry& entry, const OptionSpec& spec, OptionValue value) {
  if (std::holds_alternative<double>(spec.default_value) &&
      std::holds_alternative<std::int64_t>(value))
    value = static_cast<double>(std::get<std::int64_t>(value));
  if (value.index() != spec.default_value.index())
    throw std::invalid_argument("scheme option '" + spec.name + "' of " + entry.name + " must be " +
                                type_name(spec.default_value) + ", not " + type_name(value));
  if (is_number(value)) {
    const double number = as_number(value);
    if (!(number >= spec.minimum && number <= spec.maximum))
      throw std::invalid_argument("scheme option '" + spec.name + "' of " + entry.name + " is " +
                                  std::to_string(number) + ", but must lie in " +
                                  std::to_string(spec.minimum) + " .. " +
                                  std::to_string(spec.maximum));
  }
  return value;
}

}  // namespace

std::string name(Implementation implementation) {
  return implementation == Implementation::ddp ? "PyTorch DDP" : "Paper";
}

Implementation implementation_from(const std::string& text) {
  for (const auto implementation : {Implementation::ddp, Implementation::paper})
    if (text == name(implementation)) return implementation;
  throw std::invalid_argument("implementation is '" + text +
                              "', but must be \"PyTorch DDP\" or \"Paper\"");
}

SchemeRegistry& SchemeRegistry::instance() {
  static SchemeRegistry registry;
  return registry;
}

void SchemeRegistry::add(SchemeEntry entry) {
  for (const auto& known : entries_)
    if (known.name == entry.name && known.implementation == entry.implementation)
      throw std::logic_error("scheme '" + entry.name + "' is registered twice for " +
                             psgd::name(entry.implementation));
  entries_.push_back(std::move(entry));
}

const SchemeEntry& SchemeRegistry::find(Implementation implementation,
                                        const std::string& wanted) const {
  std::vector<std::string> known;
  for (const auto& entry : entries_) {
    if (entry.implementation != implementation) continue;
    if (entry.name == wanted) return entry;
    known.push_back(entry.name);
  }
  throw std::invalid_argument("scheme '" + wanted + "' does not exist in " +
                              psgd::name(implementation) + nearest_name_hint(wanted, known));
}

OptionValues SchemeRegistry::resolve(const SchemeEntry& entry, const OptionValues& given) {
  OptionValues resolved;
  std::vector<std::string> known;
  for (const auto& spec : entry.options) {
    known.push_back(spec.name);
    const auto found = given.find(spec.name);
    resolved[spec.name] =
        found == given.end() ? spec.default_value : checked(entry, spec, found->second);
  }
  for (const auto& [key, value] : given)
    if (!resolved.contains(key))
      throw std::invalid_argument("scheme " + entry.name + " has no option '" + key + "'" +
                                  nearest_name_hint(key, known));
  return resolved;
}

}  // namespace psgd
