#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/config/options.h"

namespace psgd {

/// What the command line says about options; filled by add_options() while CLI11 parses.
struct OptionArguments {
  std::optional<std::filesystem::path> file;  ///< --config
  std::vector<std::string> sets;              ///< --set key=value, in order
  std::vector<std::string> flags;             ///< --some-key value, as "some_key=value", in order
};

/// Adds --config, --set and one option for each key, with help, to a command. `arguments` must
/// outlive `app`.
void add_options(CLI::App& app, OptionArguments& arguments);

/// Defaults, then the file (after the files it `extends`), then `sets`, then `flags`; later ones
/// win.
///
/// A set is "key=value"; the value is JSON where it parses as such, else text.
/// "scheme_options.rank=2" sets one scheme option. scheme_options of several layers are merged, but
/// a layer that changes `scheme` starts with none. Throws UsageError that names the place, the key,
/// what was expected and what was found. Checks each value by itself; validate() checks them
/// together.
Options read_options(const std::optional<std::filesystem::path>& file,
                     const std::vector<std::string>& sets,
                     const std::vector<std::string>& flags = {});
Options read_options(const OptionArguments& arguments);

/// Reads one JSON object (no `extends`) over the defaults; `origin` stands in messages.
Options options_from_json(const nlohmann::ordered_json& object, const std::string& origin);

/// Refuses contradictions and unknown schemes, models and data sets with UsageError; fills in the
/// defaults of scheme_options.
void validate(Options& options);

/// Refuses, with UsageError, more workers than samples or batches larger than a worker's share.
/// `train_images`: images of the data set that training uses.
void check_train_images(const Options& options, std::int64_t train_images);

/// All options, in the order of the table. options_from_json(to_json(o)) gives `o` again.
nlohmann::ordered_json to_json(const Options& options);

/// Scheme options as a JSON object.
nlohmann::ordered_json to_json(const OptionValues& values);

/// One option as `list`, help and messages show it.
struct OptionDescription {
  std::string key;
  std::string type;           ///< "text", "whole number", "number", "true or false", ...
  std::string default_value;  ///< as JSON
  std::string allowed;        ///< "1 .. 65536", "float32, float64" or empty
  std::string help;
};
std::vector<OptionDescription> describe_options();

}  // namespace psgd
