#include "harness/records/jsonl.h"

#include <cmath>

#include "tests/config/refusal.h"
#include "tests/records/file_size_limit.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> read(const std::filesystem::path& file,
                              std::vector<std::string>& warnings) {
  std::vector<std::string> texts;
  for (const auto& line : read_lines(file, warnings)) texts.push_back(line.dump());
  return texts;
}

TEST(JsonLine, HasNoNanAndNoBrokenText) {
  EXPECT_EQ(json_line({{"a", NAN}, {"b", INFINITY}, {"c", -INFINITY}}),
            "{\"a\":null,\"b\":null,\"c\":null}\n");
  EXPECT_EQ(json_line({{"a", "x\ny"}}), "{\"a\":\"x\\ny\"}\n");
  EXPECT_NO_THROW(json_line({{"a", "\xff"}}));
}

TEST(ReadLines, SkipsATornLastLineWithAWarningWhereverItIsTorn) {
  const TemporaryFolder folder;
  const std::string first = "{\"a\":1}\n", second = "{\"b\":[1,2],\"c\":\"x\"}\n";
  for (std::size_t length = 0; length <= second.size(); ++length) {
    const auto file = folder.write("a.jsonl", first + second.substr(0, length));
    std::vector<std::string> warnings;
    const auto lines = read(file, warnings);
    const bool whole = length + 1 >= second.size();  // the line's end may be missing
    EXPECT_EQ(lines.size(), whole ? 2u : 1u) << length;
    EXPECT_EQ(lines.front(), "{\"a\":1}");
    EXPECT_EQ(warnings.size(), whole || length == 0 ? 0u : 1u) << length;
    EXPECT_EQ(read_last_lines(file, 5).size(), lines.size());
    for (const auto& warning : warnings) {
      EXPECT_NE(warning.find("a.jsonl, line 2"), std::string::npos) << warning;
      EXPECT_NE(warning.find("torn"), std::string::npos) << warning;
    }
  }
}

TEST(ReadLines, RefusesDamageBeforeTheLastLine) {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  for (const char* text :
       {"{\"a\":\n{\"a\":1}\n", "1\n{\"a\":1}\n", "\n{\"a\":1}\n", "{\"a\":1,\"a\":2}\n{}\n"}) {
    const auto file = folder.write("a.jsonl", text);
    expect_refusal<Error>([&] { read_lines(file, warnings); }, {"a.jsonl, line 1"});
  }
  expect_refusal<Error>([&] { read_lines(folder.path() / "none", warnings); }, {"no such file"});
  expect_refusal<Error>([&] { read_lines(folder.path(), warnings); }, {"regular file"});
}

TEST(ReadLines, FindsTheLastLinesOfALargeFile) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text +=
        json_line({{"step", i}, {"padding", std::string(static_cast<std::size_t>(i % 97), 'x')}});
  const auto file = folder.write("a.jsonl", text + "{\"step\": 200");
  const auto last = read_last_lines(file, 2);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0]["step"], 19998);
  EXPECT_EQ(last[1]["step"], 19999);
  EXPECT_TRUE(read_last_lines(folder.write("empty.jsonl", ""), 2).empty());
}

TEST(LineWriter, AppendsAndKeepsWhatIsThere) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.jsonl", "{\"a\":1}\n");
  LineWriter writer(file);
  writer.append("{\"a\":2}\n{\"a\":3}\n");
  LineWriter moved(std::move(writer));
  moved.append("");
  moved.append("{\"a\":4}\n");
  moved.sync();
  EXPECT_EQ(file_text(file), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n");
}

TEST(LineWriter, SaysThatTheDiskIsFull) {
  LineWriter writer("/dev/full");
  expect_refusal<Error>([&] { writer.append("{}\n"); },
                        {"/dev/full", "No space left on device", "kept"});
  expect_refusal<Error>([] { LineWriter("/no/such/folder/a.jsonl"); }, {"/no/such/folder/a.jsonl"});
}

TEST(LineWriter, CutsOffAHalfWrittenLineAndGoesOnLater) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.jsonl";
  LineWriter writer(file);
  const std::string line = "{\"text\":\"" + std::string(80, 'x') + "\"}\n";
  for (int i = 0; i < 10; ++i) writer.append(line);
  {
    const FileSizeLimit limit(10 * line.size() + line.size() / 2);
    expect_refusal<Error>([&] { writer.append(line + line); },
                          {"a.jsonl", "kept", "File too large"});
  }
  EXPECT_EQ(file_text(file).size(), 10 * line.size());
  writer.append(line);
  std::vector<std::string> warnings;
  EXPECT_EQ(read_lines(file, warnings).size(), 11u);
  EXPECT_TRUE(warnings.empty());
}

}  // namespace
}  // namespace psgd
