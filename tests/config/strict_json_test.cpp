#include "harness/config/strict_json.h"

#include "tests/config/refusal.h"

namespace psgd {
namespace {

TEST(StrictJson, KeepsOrderTypesAndNesting) {
  const std::string text = R"({"z":1,"a":[true,null,-2,3.5,"x",{"k":[]}],"b":{}})";
  EXPECT_EQ(parse_json(text, "here").dump(), text);
}

TEST(StrictJson, RefusesDuplicateKeysAtAnyDepth) {
  expect_refusal<Error>([] { parse_json(R"({"seed": 1, "seed": 2})", "a.json"); },
                        {"a.json", "'seed'", "twice"});
  expect_refusal<Error>([] { parse_json(R"([{"a": {"rank": 1, "rank": 1}}])", "a.json"); },
                        {"'rank'", "twice"});
  EXPECT_NO_THROW(
      parse_json(R"([{"rank": 1}, {"rank": 1}, {"a": {"rank": 1}, "rank": 1}])", "a.json"));
}

TEST(StrictJson, NamesThePlaceOfASyntaxError) {
  expect_refusal<Error>([] { parse_json("{\n \"a\": 1,\n}", "a.json"); }, {"a.json", "line 3"});
  for (const char* text : {"", "{", "[1", "{\"a\":NaN}", "Infinity", "{'a':1}", "1e999", "-1e999",
                           "{} {}", "\"\xff\""})
    expect_refusal<Error>([&] { parse_json(text, "a.json"); }, {"a.json: "});
}

TEST(StrictJson, SurvivesADepthBomb) {
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string bomb;
    for (int i = 0; i < 200000; ++i) bomb += open;
    expect_refusal<Error>([&] { parse_json(bomb, "a.json"); }, {"deeper than 32"});
  }
  EXPECT_NO_THROW(parse_json(std::string(32, '[') + std::string(32, ']'), "a.json"));
  EXPECT_THROW(parse_json(std::string(33, '[') + std::string(33, ']'), "a.json"), Error);
}

TEST(StrictJson, ReadsRegularFilesOnly) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.txt", "12345");
  EXPECT_EQ(read_text_file(file, 5), "12345");
  expect_refusal<Error>([&] { read_text_file(file, 4); }, {"a.txt", "5 bytes", "at most 4"});
  expect_refusal<Error>([&] { read_text_file(folder.path(), 9); },
                        {"expected a file, found a folder"});
  expect_refusal<Error>([&] { read_text_file(folder.path() / "none", 9); },
                        {"none", "no such file"});
  expect_refusal<Error>([&] { read_text_file("/dev/zero", 9); }, {"/dev/zero", "regular"});
}

TEST(StrictJson, ShowsValuesShortAndOnOneLine) {
  EXPECT_EQ(shown("a\nb"), "\"a\\nb\"");
  EXPECT_LT(shown(std::string(1000, 'x')).size(), 70u);
  EXPECT_NO_THROW(shown("\xff\xfe"));
}

}  // namespace
}  // namespace psgd
