#include <gtest/gtest.h>

#include <stdexcept>

#include "compressors/scheme.h"

namespace psgd::test {
namespace {

std::string label(Implementation implementation, const std::string& name,
                  const OptionValues& given = {}) {
  const auto& entry = SchemeRegistry::instance().find(implementation, name);
  return entry.label(SchemeRegistry::resolve(entry, given));
}

TEST(Registry, HoldsTheNotebooksSchemes) {
  EXPECT_EQ(label(Implementation::ddp, "full-precision"), "full precision");
  EXPECT_EQ(label(Implementation::ddp, "fp16"), "FP16");
  EXPECT_EQ(label(Implementation::ddp, "powersgd", {{"rank", std::int64_t{4}}}), "rank 4");
  EXPECT_EQ(label(Implementation::paper, "full-precision"), "full precision");
  EXPECT_EQ(label(Implementation::paper, "powersgd", {{"rank", std::int64_t{2}}}), "rank 2");
  EXPECT_THROW(SchemeRegistry::instance().find(Implementation::paper, "fp16"),
               std::invalid_argument);
}

std::unique_ptr<Scheme> make_ddp_powersgd(const OptionValues& given) {
  const auto& entry = SchemeRegistry::instance().find(Implementation::ddp, "powersgd");
  return entry.make(SchemeRegistry::resolve(entry, given));
}

TEST(Registry, RefusesAnEarlyStartWithErrorFeedbackOrWarmStart) {
  for (const std::int64_t start : {0, 1}) {
    EXPECT_THROW(make_ddp_powersgd({{"start_iteration", start}}), std::invalid_argument);
    EXPECT_THROW(make_ddp_powersgd({{"start_iteration", start}, {"warm_start", false}}),
                 std::invalid_argument);
    EXPECT_THROW(make_ddp_powersgd({{"start_iteration", start}, {"use_error_feedback", false}}),
                 std::invalid_argument);
    EXPECT_NO_THROW(make_ddp_powersgd(
        {{"start_iteration", start}, {"use_error_feedback", false}, {"warm_start", false}}));
  }
}

TEST(Registry, RefusesBadOptions) {
  EXPECT_THROW(make_ddp_powersgd({{"rank", std::int64_t{0}}}), std::invalid_argument);
  EXPECT_THROW(make_ddp_powersgd({{"rank", 1.5}}), std::invalid_argument);
  EXPECT_THROW(make_ddp_powersgd({{"rnak", std::int64_t{1}}}), std::invalid_argument);
  EXPECT_THROW(make_ddp_powersgd({{"kernels", std::string("slow")}}), std::invalid_argument);
}

TEST(Registry, RefusesADuplicateName) {
  SchemeRegistry registry;
  SchemeEntry entry;
  entry.name = "twice";
  registry.add(entry);
  EXPECT_THROW(registry.add(entry), std::logic_error);
}

}  // namespace
}  // namespace psgd::test
