#include "harness/config/config_reader.h"

#include <algorithm>

#include "compressors/nearest_name.h"
#include "harness/config/option_values.h"
#include "harness/config/strict_json.h"
#include "harness/error.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kLargestConfig = std::size_t{1} << 20;
constexpr std::size_t kLongestChain = 16;

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  const Options options;
  visit_options(options, [&](const char* key, const auto&, const Limits&, const char*) {
    keys.emplace_back(key);
  });
  return keys;
}

void apply_key(Options& options, const std::string& key, const Json& value,
               const std::string& origin) {
  bool found = false;
  visit_options(options, [&](const char* name, auto& member, const Limits& limits, const char*) {
    if (key != name) return;
    found = true;
    assign(member, value, limits, {origin, key});
    options.origins[key] = origin;
  });
  if (!found)
    throw UsageError(origin + ": unknown key '" + key + "'" + nearest_name_hint(key, known_keys()));
}

/// Options of one scheme mean nothing to another.
void forget_options_of_other_scheme(Options& options, const Json& new_scheme) {
  if (new_scheme.is_string() && new_scheme.get_ref<const std::string&>() != options.scheme)
    options.scheme_options.clear();
}

void apply_object(Options& options, const Json& object, const std::string& origin) {
  if (!object.is_object())
    throw UsageError(origin + ": expected a JSON object of options, found " + shown(object));
  if (object.contains("scheme")) forget_options_of_other_scheme(options, object.at("scheme"));
  for (const auto& [key, value] : object.items())
    if (key != "extends") apply_key(options, key, value, origin);
}

Json parse_config(const fs::path& path) {
  try {
    return parse_json(read_text_file(path, kLargestConfig), path.string());
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

/// Applies `path` and, before it, the files that it extends. `chain` holds the files that led here.
void apply_file(Options& options, const fs::path& path, std::vector<fs::path> chain) {
  std::error_code error;
  const auto canonical = fs::weakly_canonical(path, error);
  const bool cycle = std::ranges::find(chain, canonical) != chain.end();
  chain.push_back(canonical);
  if (cycle || chain.size() > kLongestChain) {
    std::string route;
    for (const auto& link : chain) route += (route.empty() ? "" : " -> ") + link.string();
    throw UsageError("'extends' " +
                     std::string(cycle ? "goes round in a circle: " : "goes on for too long: ") +
                     route);
  }
  const Json object = parse_config(path);
  if (object.is_object() && object.contains("extends")) {
    const Json& base = object.at("extends");
    if (!base.is_string())
      throw UsageError(path.string() +
                       ": 'extends' must be a text, the path of another file, but is " +
                       shown(base));
    apply_file(options, path.parent_path() / base.get<std::string>(), chain);
  }
  apply_object(options, object, path.string());
}

struct Assignment {
  std::string key;
  Json value;
  std::string origin;
};

bool is_text_option(const std::string& key) {
  bool is_text = false;
  Options options;
  visit_options(options, [&]<class T>(const char* name, T&, const Limits&, const char*) {
    if (key == name) is_text = std::is_same_v<T, std::string>;
  });
  return is_text;
}

/// The value of "key=value". Where a text is expected, only a quoted value is read as JSON: a run
/// may be named 12.
Json parse_value(const std::string& key, const std::string& text, const std::string& origin) {
  if (is_text_option(key) && !text.starts_with('"')) return text;
  if (!Json::accept(text)) return text;
  try {
    return parse_json(text, origin);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

/// Options are stored as JSON, which is UTF-8; a file's text is checked by its parser.
bool is_utf8(const std::string& text) {
  try {
    return !Json(text).dump().empty();
  } catch (const Json::type_error&) {
    return false;
  }
}

Assignment parse_assignment(const std::string& text, const std::string& origin) {
  if (!is_utf8(text)) throw UsageError(origin + ": expected UTF-8, found " + shown(text));
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(origin + ": expected key=value, found '" + text + "'");
  std::string key = text.substr(0, equals);
  Json value = parse_value(key, text.substr(equals + 1), origin);
  const std::string prefix = "scheme_options.";
  if (key.starts_with(prefix)) {
    const std::string option = key.substr(prefix.size());
    return {"scheme_options", Json::object({{option, std::move(value)}}), origin};
  }
  return {std::move(key), std::move(value), origin};
}

void apply_assignments(Options& options, const std::vector<Assignment>& assignments) {
  const auto last =
      std::find_if(assignments.rbegin(), assignments.rend(),
                   [](const Assignment& assignment) { return assignment.key == "scheme"; });
  if (last != assignments.rend()) forget_options_of_other_scheme(options, last->value);
  for (const auto& assignment : assignments)
    apply_key(options, assignment.key, assignment.value, assignment.origin);
}

std::string dashed(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

}  // namespace

Options read_options(const std::optional<fs::path>& file, const std::vector<std::string>& sets,
                     const std::vector<std::string>& flags) {
  Options options;
  if (file) apply_file(options, *file, {});
  std::vector<Assignment> assignments;
  for (const auto& text : sets) assignments.push_back(parse_assignment(text, "--set " + text));
  for (const auto& text : flags)
    assignments.push_back(parse_assignment(text, dashed(text.substr(0, text.find('=')))));
  apply_assignments(options, assignments);
  return options;
}

Options read_options(const OptionArguments& arguments) {
  return read_options(arguments.file, arguments.sets, arguments.flags);
}

Options options_from_json(const Json& object, const std::string& origin) {
  Options options;
  if (object.is_object() && object.contains("extends"))
    throw UsageError(origin + ": 'extends' has no place here");
  apply_object(options, object, origin);
  return options;
}

Json to_json(const Options& options) {
  Json json = Json::object();
  visit_options(options, [&](const char* key, const auto& member, const Limits&, const char*) {
    json[key] = value_to_json(member);
  });
  return json;
}

Json to_json(const OptionValues& values) { return value_to_json(values); }

std::vector<OptionDescription> describe_options() {
  std::vector<OptionDescription> descriptions;
  const Options defaults;
  visit_options(
      defaults, [&](const char* key, const auto& member, const Limits& limits, const char* help) {
        descriptions.push_back(
            {key, type_name(member), value_to_json(member).dump(), allowed(limits), help});
      });
  return descriptions;
}

void add_options(CLI::App& app, OptionArguments& arguments) {
  app.add_option_function<std::string>(
         "--config", [&arguments](const std::string& path) { arguments.file = path; },
         "JSON file of options, the keys as below with '_' for '-'; it may name another with "
         "\"extends\"")
      ->type_name("FILE");
  app.add_option("--set", arguments.sets,
                 "key=value, over the file; scheme_options.rank=2 sets one scheme option")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  for (const auto& option : describe_options()) {
    std::string help = option.help + "; " + option.type;
    if (!option.allowed.empty()) help += ": " + option.allowed;
    app.add_option_function<std::string>(
           dashed(option.key),
           [&arguments, key = option.key](const std::string& text) {
             arguments.flags.push_back(key + "=" + text);
           },
           help)
        ->type_name("")
        ->default_str(option.default_value)
        ->group("Options (also keys of the configuration)");
  }
}

}  // namespace psgd
