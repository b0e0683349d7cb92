#include "harness/config/config_reader.h"

#include <algorithm>

#include "harness/config/option_values.h"
#include "tests/config/refusal.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

Options from_text(const std::string& text) {
  const TemporaryFolder folder;
  return read_options(folder.write("run.json", text), {});
}

void expect_usage_error(const std::string& text, const std::vector<std::string>& parts) {
  SCOPED_TRACE(text);
  expect_refusal<UsageError>([&] { from_text(text); }, parts);
}

// A value that is allowed and is not the default, for each type.
Json other(const std::string&, const Limits& limits) {
  return limits.choices.empty() ? "other" : limits.choices.back();
}
Json other(const bool& value, const Limits&) { return !value; }
Json other(const std::int64_t& value, const Limits& limits) {
  return limits.choices.empty() ? Json(value + 1) : Json(std::stoll(limits.choices.front()));
}
Json other(const double&, const Limits&) { return 0.5; }
Json other(const std::vector<std::int64_t>&, const Limits&) { return {7, 9}; }
Json other(const OptionValues&, const Limits&) {
  return {{"a", true}, {"b", 2}, {"c", 2.5}, {"d", "text"}};
}

struct Key {
  std::string name;
  Json default_value;
  Json other_value;
  Limits limits;
  bool is_text = false;
  bool is_number = false;
};

std::vector<Key> all_keys() {
  std::vector<Key> keys;
  const Options defaults;
  visit_options(defaults, [&]<class T>(const char* name, const T& member, const Limits& limits,
                                       const char* help) {
    EXPECT_NE(std::string(help), "") << name;
    keys.push_back({name, value_to_json(member), other(member, limits), limits,
                    std::is_same_v<T, std::string>,
                    std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>});
    if (keys.back().name == "decay_factor") keys.back().other_value = 2.5;
    if (keys.back().name == "watchdog_seconds") keys.back().other_value = 30;
  });
  return keys;
}

TEST(Options, EveryKeyGoesThroughFileSetFlagAndDump) {
  const TemporaryFolder folder;
  for (const auto& key : all_keys()) {
    SCOPED_TRACE(key.name);
    ASSERT_NE(key.default_value, key.other_value);
    const Json object = {{key.name, key.other_value}};
    const std::string text =
        key.other_value.is_string() ? key.other_value.get<std::string>() : key.other_value.dump();
    const auto file = folder.write(key.name + ".json", object.dump());
    for (const Options& options :
         {read_options(file, {}), read_options({}, {key.name + "=" + text}),
          read_options({}, {}, {key.name + "=" + text})}) {
      const Json dump = to_json(options);
      EXPECT_EQ(dump[key.name], key.other_value);
      EXPECT_EQ(to_json(options_from_json(dump, "dump")), dump);
      Json rest = dump;  // nothing else moved
      rest[key.name] = key.default_value;
      EXPECT_EQ(rest, to_json(Options()));
    }
  }
}

TEST(Options, EveryKeyRefusesWrongTypesAndValuesOutOfRange) {
  for (const auto& key : all_keys()) {
    SCOPED_TRACE(key.name);
    for (const char* wrong : {"null", "[[1]]", "[1.5]", "{\"a\": {}}", "{\"a\": null}", "[\"1\"]"})
      expect_usage_error("{\"" + key.name + "\": " + wrong + "}",
                         {"run.json", key.name, "must be"});
    if (!key.is_text) expect_usage_error("{\"" + key.name + "\": \"12\"}", {"must be", "\"12\""});
    if (key.is_text && key.limits.choices.empty()) continue;
    if (key.is_text)
      expect_usage_error("{\"" + key.name + "\": \"what\"}",
                         {key.name, key.limits.choices.front()});
    if (!key.is_number) continue;
    for (const char* absurd :
         {"-1", "-9223372036854775808", "18446744073709551615", "1e300", "-0.5"})
      expect_usage_error("{\"" + key.name + "\": " + absurd + "}",
                         {"run.json", key.name, absurd[0] == '-' ? "-" : "1"});
    expect_usage_error("{\"" + key.name + "\": NaN}", {"run.json", "line 1"});
    expect_usage_error("{\"" + key.name + "\": 1e999}", {"run.json"});
    for (const char* text : {"nan", "inf", "-inf", "1e999"})
      expect_refusal<UsageError>([&] { read_options({}, {key.name + "=" + text}); },
                                 {"--set " + key.name, "must be"});
  }
}

TEST(Options, AWholeNumberIsNotWrittenAsAFraction) {
  expect_usage_error(R"({"epochs": 3.0})", {"'epochs' must be a whole number", "3.0"});
  EXPECT_EQ(from_text(R"({"learning_rate": 1})").learning_rate, 1.0);
}

TEST(Options, RangesIncludeTheirEnds) {
  EXPECT_EQ(from_text(R"({"n_workers": 1})").n_workers, 1);
  EXPECT_EQ(from_text(R"({"n_workers": 65536})").n_workers, 65536);
  expect_usage_error(R"({"n_workers": 0})", {"'n_workers' is 0", "1 .. 65536"});
  expect_usage_error(R"({"n_workers": 65537})", {"'n_workers' is 65537", "1 .. 65536"});
  expect_usage_error(R"({"decay_epochs": [3, -4]})", {"'decay_epochs' is -4"});
  EXPECT_EQ(from_text(R"({"seed": 9007199254740991})").seed, 9007199254740991);
}

TEST(Options, UnknownKeysNameTheNearest) {
  expect_usage_error(R"({"learning_rat": 1})",
                     {"run.json", "'learning_rat'", "did you mean 'learning_rate'?"});
  expect_usage_error(R"({"Epochs": 1})", {"did you mean 'epochs'?"});
  expect_usage_error(R"({"rank": 1})", {"unknown key 'rank'"});
  expect_refusal<UsageError>([] { read_options({}, {"epoch=1"}); },
                             {"--set epoch=1", "did you mean 'epochs'?"});
  expect_usage_error(R"({"implementation": "PytorchDDP"})", {"did you mean 'PyTorch DDP'?"});
}

TEST(Options, RefusesWhatIsNotAnObjectOrHasAKeyTwice) {
  expect_usage_error("[]", {"run.json", "object", "[]"});
  expect_usage_error("", {"run.json"});
  expect_usage_error(R"({"seed": 1, "epochs": 2, "seed": 1})", {"run.json", "'seed' stands twice"});
  expect_usage_error(R"({"scheme_options": {"rank": 1, "rank": 2}})", {"'rank' stands twice"});
  expect_refusal<UsageError>([] { read_options("/no/such/file.json", {}); },
                             {"/no/such/file.json"});
  expect_refusal<UsageError>([] { read_options("/tmp", {}); }, {"/tmp", "folder"});
}

TEST(Options, FlagsOverSetsOverFile) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.json", R"({"seed": 1, "epochs": 10, "threads": 3})");
  const Options options = read_options(file, {"seed=2", "epochs=20", "epochs=21"}, {"seed=3"});
  EXPECT_EQ(options.seed, 3);
  EXPECT_EQ(options.epochs, 21);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.origins.at("seed"), "--seed");
  EXPECT_EQ(options.origins.at("epochs"), "--set epochs=21");
  EXPECT_EQ(options.origins.at("threads"), file.string());
}

TEST(Options, SetReadsJsonWhereItIsJsonAndTextElsewhere) {
  const Options options =
      read_options({}, {"decay_epochs=[4,5]", "augment=false", "name=12", "scheme=a=b",
                        "data_dir=\"quoted\"", "scheme_options.rank=2", "scheme_options.how=fast"});
  EXPECT_EQ(options.decay_epochs, (std::vector<std::int64_t>{4, 5}));
  EXPECT_FALSE(options.augment);
  EXPECT_EQ(options.name, "12");
  EXPECT_EQ(options.scheme, "a=b");
  EXPECT_EQ(options.data_dir, "quoted");
  EXPECT_EQ(std::get<std::int64_t>(options.scheme_options.at("rank")), 2);
  EXPECT_EQ(std::get<std::string>(options.scheme_options.at("how")), "fast");
  for (const char* text :
       {"seed", "=1", "seed=", "seed=one", "extends=a.json", "decay_epochs.0=1", "scheme_options=1",
        "scheme_options.rank=[1]", "scheme_options={\"a\":1,\"a\":2}"})
    expect_refusal<UsageError>([&] { read_options({}, {text}); }, {"--set"});
}

TEST(Options, RefusesTextThatCannotBeStored) {
  expect_refusal<UsageError>([] { read_options({}, {"name=a\xed"}); }, {"--set", "UTF-8"});
  expect_refusal<UsageError>([] { read_options({}, {"scheme_options.a\xff=1"}); }, {"UTF-8"});
  expect_refusal<UsageError>([] { read_options({}, {}, {"data_dir=/\xff"}); },
                             {"--data-dir", "UTF-8"});
  expect_usage_error("{\"name\": \"a\xed\"}", {"run.json", "UTF-8"});
  EXPECT_NO_THROW(to_json(read_options({}, {"name=\xc3\xa9"})).dump());
}

TEST(Options, SchemeOptionsMergeButNotAcrossSchemes) {
  const TemporaryFolder folder;
  const auto base = folder.write(
      "base.json", R"({"scheme": "powersgd", "scheme_options": {"rank": 4, "warm_start": false}})");
  const auto same =
      folder.write("same.json", R"({"extends": "base.json", "scheme_options": {"rank": 2}})");
  EXPECT_EQ(to_json(read_options(same, {}).scheme_options).dump(),
            R"({"rank":2,"warm_start":false})");
  const auto new_scheme = folder.write(
      "other.json", R"({"extends": "base.json", "scheme_options": {"k": 1}, "scheme": "x"})");
  EXPECT_EQ(to_json(read_options(new_scheme, {}).scheme_options).dump(), R"({"k":1})");
  EXPECT_EQ(to_json(read_options(base, {"scheme_options.k=1", "scheme=x"}).scheme_options).dump(),
            R"({"k":1})");
  EXPECT_EQ(to_json(read_options(base, {"scheme_options.rank=1", "scheme=powersgd"}).scheme_options)
                .dump(),
            R"({"rank":1,"warm_start":false})");
}

TEST(Options, ExtendsIsRelativeToItsFile) {
  const TemporaryFolder folder;
  folder.write("base.json", R"({"seed": 5, "epochs": 7})");
  const auto file =
      folder.write("deep/er/run.json", R"({"epochs": 8, "extends": "../../base.json"})");
  const Options options = read_options(file, {});
  EXPECT_EQ(options.seed, 5);
  EXPECT_EQ(options.epochs, 8);
  EXPECT_FALSE(to_json(options).contains("extends"));
}

TEST(Options, ExtendsRefusesCirclesAndLongChainsAndNamesTheFile) {
  const TemporaryFolder folder;
  const auto first = folder.write("a.json", R"({"extends": "b.json"})");
  folder.write("b.json", R"({"extends": "./c/../a.json"})");
  folder.write("c/x", "");
  expect_refusal<UsageError>([&] { read_options(first, {}); },
                             {"circle", "a.json -> ", "b.json -> "});
  const auto self = folder.write("self.json", R"({"extends": "self.json"})");
  expect_refusal<UsageError>([&] { read_options(self, {}); }, {"circle"});
  for (int i = 0; i < 20; ++i)
    folder.write("n" + std::to_string(i) + ".json",
                 R"({"extends": "n)" + std::to_string(i + 1) + R"(.json"})");
  expect_refusal<UsageError>([&] { read_options(folder.path() / "n0.json", {}); }, {"too long"});
  const auto lost = folder.write("lost.json", R"({"extends": "nowhere.json"})");
  expect_refusal<UsageError>([&] { read_options(lost, {}); }, {"nowhere.json", "no such file"});
  const auto typed = folder.write("typed.json", R"({"extends": ["a.json"]})");
  expect_refusal<UsageError>([&] { read_options(typed, {}); }, {"typed.json", "'extends'"});
  const auto above = folder.write("above.json", R"({"extends": "bad.json"})");
  folder.write("bad.json", R"({"epoch": 1})");
  expect_refusal<UsageError>([&] { read_options(above, {}); }, {"bad.json", "'epoch'"});
}

void parse(CLI::App& app, std::vector<std::string> arguments) {
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  app.parse(std::move(arguments));
}

TEST(Options, CommandLineHasEveryKeyWithHelp) {
  CLI::App app;
  OptionArguments arguments;
  add_options(app, arguments);
  const std::string help = app.help();
  for (const auto& option : describe_options()) {
    EXPECT_NE(help.find(option.help.substr(0, 20)), std::string::npos) << option.key;
    EXPECT_NE(help.find(option.default_value), std::string::npos) << option.key;
  }
  parse(app, {"--decay-epochs", "[4,5]", "--seed=7", "--set", "epochs=9", "--set=threads=2",
              "--scheme-options", "{\"rank\":2}", "--augment", "false", "--learning-rate", "1e-3"});
  const Options options = read_options(arguments);
  EXPECT_EQ(options.decay_epochs, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(options.seed, 7);
  EXPECT_EQ(options.epochs, 9);
  EXPECT_EQ(options.threads, 2);
  EXPECT_FALSE(options.augment);
  EXPECT_EQ(options.learning_rate, 1e-3);
  EXPECT_EQ(std::get<std::int64_t>(options.scheme_options.at("rank")), 2);
}

TEST(Options, NegativeNumbersOnTheCommandLineReachTheRangeCheck) {
  CLI::App app;
  OptionArguments arguments;
  add_options(app, arguments);
  parse(app, {"--seed", "-1"});
  expect_refusal<UsageError>([&] { read_options(arguments); }, {"--seed", "'seed' is -1", "0 .. "});
}

}  // namespace
}  // namespace psgd
