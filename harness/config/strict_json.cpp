#include "harness/config/strict_json.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include "harness/error.h"

namespace psgd {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kDeepest = 32;

/// Builds the value from the parser's events, because nlohmann's own builder keeps the last of two
/// equal keys.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  Json root;
  std::string error;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary values have no place here"); }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!open_.back().keys.insert(name).second)
      return fail("the key '" + name + "' stands twice in one object");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    const std::string text = exception.what();
    const auto end_of_prefix =
        text.find("] ");  // "[json.exception.parse_error.101] parse error at line 1, ..."
    return fail(end_of_prefix == std::string::npos ? text : text.substr(end_of_prefix + 2));
  }

 private:
  struct Open {
    Json* value;
    std::set<std::string> keys;
  };

  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }

  Json* place(Json value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // Straight into the vector that an ordered object is: its own insertion searches all keys each
    // time.
    auto& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (open_.size() == kDeepest)
      return fail("nested deeper than " + std::to_string(kDeepest) + " levels");
    open_.push_back({place(std::move(value)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // Pointers stay valid: only the innermost open value grows.
  std::vector<Open> open_;
  std::string key_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& origin) {
  StrictBuilder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    throw Error(origin + ": " + builder.error);
  return std::move(builder.root);
}

std::string read_text_file(const std::filesystem::path& path, std::size_t largest) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw Error(path.string() + ": there is no such file");
  if (status.type() == std::filesystem::file_type::directory)
    throw Error(path.string() + ": expected a file, found a folder");
  if (status.type() != std::filesystem::file_type::regular)
    throw Error(path.string() + ": expected a regular file" +
                (error ? ": " + error.message() : ""));
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > largest)
    throw Error(path.string() + ": holds " + std::to_string(size) + " bytes, expected at most " +
                std::to_string(largest));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path.string() + ": cannot be opened: " + std::strerror(errno));
  std::string text;
  text.resize(static_cast<std::size_t>(size));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw Error(path.string() + ": cannot be read: " + std::strerror(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace psgd
