#include "harness/commands/list_command.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>

#include "compressors/scheme.h"
#include "harness/data/dataset.h"
#include "models/model.h"

namespace psgd {
namespace {

std::string text(const OptionValue& value) {
  std::ostringstream out;
  out << std::boolalpha;
  std::visit([&](const auto& v) { out << v; }, value);
  return out.str();
}

void list_option(const OptionSpec& option, std::ostream& out) {
  const bool is_number = std::holds_alternative<std::int64_t>(option.default_value) ||
                         std::holds_alternative<double>(option.default_value);
  out << "      " << option.name << " = " << text(option.default_value);
  if (is_number) out << "  (" << option.minimum << " .. " << option.maximum << ")";
  out << "  " << option.help << '\n';
}

void list_schemes(Implementation implementation, std::ostream& out) {
  out << "schemes of " << name(implementation) << ":\n";
  for (const auto& entry : SchemeRegistry::instance().entries()) {
    if (entry.implementation != implementation) continue;
    out << "  " << entry.name << "  " << entry.summary << '\n';
    for (const auto& option : entry.options) list_option(option, out);
  }
}

template <class Entries>
void list_entries(const char* title, const Entries& entries, std::ostream& out) {
  out << title << ":\n";
  for (const auto& entry : entries) out << "  " << entry.name << "  " << entry.summary << '\n';
}

}  // namespace

void list_registries(std::ostream& out) {
  list_schemes(Implementation::ddp, out);
  list_schemes(Implementation::paper, out);
  list_entries("models", ModelRegistry::instance().entries(), out);
  list_entries("data sets", DatasetRegistry::instance().entries(), out);
}

void add_list_command(CLI::App& app, CommandToRun& run) {
  auto* command = app.add_subcommand(
      "list", "print the schemes with their options, the models and the data sets");
  command->callback([&run] {
    run = [] {
      list_registries(std::cout);
      return 0;
    };
  });
}

}  // namespace psgd
