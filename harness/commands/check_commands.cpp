#include "harness/commands/check_commands.h"

#include <iostream>
#include <memory>

#include "harness/config/config_reader.h"
#include "harness/data/dataset.h"

namespace psgd {
namespace {

void print_labels(const char* split, const Images& images, int classes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (std::int64_t i = 0; i < images.count(); ++i)
    ++counts[static_cast<std::size_t>(images.label(i))];
  std::cout << split << ": " << images.count() << " images; per class:";
  for (const auto count : counts) std::cout << ' ' << count;
  std::cout << '\n';
}

void add_check_data(CLI::App& app, CommandToRun& run) {
  auto options = std::make_shared<DatasetOptions>();
  options->name = "cifar10";
  CLI::App* command =
      app.add_subcommand("check-data", "Reads a data set, checks it, and says what is there");
  command->add_option("directory", options->directory, "Folder with the data set's files");
  command->add_option("--dataset", options->name, "Data set (see `list`)")->capture_default_str();
  command->callback([options, &run] {
    run = [options] {
      const Dataset dataset = load_dataset(*options);
      std::cout << dataset.name << " in " << dataset.directory.string() << "\n"
                << checksum(dataset) << '\n';
      print_labels("train", dataset.train, dataset.classes);
      print_labels("test", dataset.test, dataset.classes);
      return 0;
    };
  });
}

void add_check_config(CLI::App& app, CommandToRun& run) {
  auto arguments = std::make_shared<OptionArguments>();
  CLI::App* command =
      app.add_subcommand("check-config", "Reads a configuration and prints it resolved");
  add_options(*command, *arguments);
  command->callback([arguments, &run] {
    run = [arguments] {
      Options options = read_options(*arguments);
      validate(options);
      std::cout << to_json(options).dump(2) << '\n';
      return 0;
    };
  });
}

}  // namespace

void add_check_commands(CLI::App& app, CommandToRun& run) {
  add_check_data(app, run);
  add_check_config(app, run);
}

}  // namespace psgd
