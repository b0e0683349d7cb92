#include <fstream>

#include "compressors/scheme.h"
#include "harness/config/config_reader.h"
#include "harness/config/strict_json.h"
#include "tests/config/refusal.h"

namespace psgd {
namespace {

namespace fs = std::filesystem;

const RegisterScheme test_scheme({"test-only",
                                  Implementation::ddp,
                                  "exists in these tests",
                                  {{"rank", std::int64_t{1}, "", 1, 64}, {"warm", true, ""}},
                                  [](const OptionValues&) { return std::string("test"); },
                                  [](const OptionValues&) { return std::unique_ptr<Scheme>(); }});

void expect_contradiction(const std::vector<std::string>& sets,
                          const std::vector<std::string>& parts) {
  expect_refusal<UsageError>(
      [&] {
        Options options = read_options({}, sets);
        validate(options);
      },
      parts);
}

TEST(Validate, DefaultsAreValid) {
  Options options;
  EXPECT_NO_THROW(validate(options));
}

TEST(Validate, FillsInSchemeOptionsAndIsIdempotent) {
  Options options = read_options({}, {"scheme=test-only", "scheme_options.rank=4"});
  validate(options);
  EXPECT_EQ(to_json(options.scheme_options).dump(), R"({"rank":4,"warm":true})");
  const auto once = to_json(options);
  validate(options);
  EXPECT_EQ(to_json(options), once);
}

TEST(Validate, RefusesUnknownNames) {
  expect_contradiction({"scheme=test-onyl"},
                       {"--set scheme=test-onyl", "did you mean 'test-only'?"});
  expect_contradiction({"model=resnet81"}, {"--set model=resnet81", "did you mean 'resnet18'?"});
  expect_contradiction({"dataset=cifar"}, {"--set dataset=cifar", "did you mean 'cifar10'?"});
}

TEST(Validate, SaysWhereASchemeExists) {
  expect_contradiction({"scheme=test-only", "implementation=Paper"},
                       {"'test-only' exists in PyTorch DDP only", "implementation is Paper"});
  expect_contradiction({"scheme=fp16", "implementation=Paper"},
                       {"'fp16' exists in PyTorch DDP only"});
}

TEST(Validate, RefusesSchemeOptionsThatTheSchemeHasNot) {
  expect_contradiction({"scheme=test-only", "scheme_options.rnak=2"},
                       {"--set", "'rnak'", "did you mean 'rank'?"});
  expect_contradiction({"scheme=test-only", "scheme_options.rank=two"}, {"'rank'", "whole number"});
  expect_contradiction({"scheme=test-only", "scheme_options.rank=0"}, {"'rank'", "must lie in"});
  expect_contradiction({"scheme_options.rank=2"}, {"full-precision has no option 'rank'"});
}

TEST(Validate, RefusesDecayAfterTheLastEpoch) {
  expect_contradiction({"epochs=250"}, {"decay_epochs holds 250", "249"});
  expect_contradiction({"decay_epochs=[100, 100]"}, {"--set", "100 after 100", "increase"});
  Options options = read_options({}, {"epochs=6", "decay_epochs=[4,5]"});
  EXPECT_NO_THROW(validate(options));
  options = read_options({}, {"epochs=1", "decay_epochs=[]"});
  EXPECT_NO_THROW(validate(options));
}

TEST(Validate, RefusesMoreWorkersThanImagesAndBatchesLargerThanAShare) {
  expect_contradiction({"train_images=15"}, {"n_workers is 16", "15 training images"});
  expect_contradiction({"train_images=2032"}, {"batch_size is 128", "is 127"});
  expect_contradiction({"train_images=2033", "batches_per_epoch=2"},
                       {"batches_per_epoch is 2", "only 1"});
  Options options = read_options({}, {"train_images=2033"});  // padded to 128 each
  EXPECT_NO_THROW(validate(options));
  options = Options();
  EXPECT_NO_THROW(check_train_images(options, 50000));
  options.batches_per_epoch = 24;
  EXPECT_NO_THROW(check_train_images(options, 50000));
  options.batches_per_epoch = 25;
  expect_refusal<UsageError>([&] { check_train_images(options, 50000); }, {"25", "24"});
}

/// Lays a sweep entry's settings over its base, as scripts/sweep.py does with --set.
void check_scheme_entry(const fs::path& base, const nlohmann::ordered_json& entry,
                        const std::string& implementation) {
  std::vector<std::string> sets = {"implementation=" + implementation};
  if (entry.is_string()) {
    sets.push_back("scheme=" + entry.get<std::string>());
  } else {
    sets.push_back("scheme=" + entry["scheme"].get<std::string>());
    const auto options = entry.value("scheme_options", nlohmann::ordered_json::object());
    for (const auto& [key, value] : options.items())
      sets.push_back("scheme_options." + key + "=" + (value.is_array() ? value[0] : value).dump());
  }
  SCOPED_TRACE(base.string() + " " + nlohmann::ordered_json(sets).dump());
  Options options = read_options(base, sets);
  validate(options);
  check_train_images(options, 50000);
}

TEST(Validate, EveryShippedConfigurationLoads) {
  int sweeps = 0, bases = 0;
  for (const auto& file : fs::recursive_directory_iterator(fs::path(PSGD_SOURCE_DIR) / "configs")) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path().string());
    const auto content = parse_json(read_text_file(file.path(), 1 << 20), file.path().string());
    if (!content.contains("experiments")) {
      Options options = read_options(file.path(), {});
      EXPECT_NO_THROW(validate(options));
      ++bases;
      continue;
    }
    ++sweeps;
    for (const auto& experiment : content["experiments"])
      for (const auto& entry : experiment["schemes"])
        EXPECT_NO_THROW(
            check_scheme_entry(file.path().parent_path() / content["base"].get<std::string>(),
                               entry, experiment["implementation"].get<std::string>()));
  }
  EXPECT_GT(sweeps, 0);
  EXPECT_GT(bases, 0);
}

}  // namespace
}  // namespace psgd
