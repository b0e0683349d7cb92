#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace psgd {

/// Parses one JSON value. Stricter than JSON asks for: a key twice in one object, more than 32
/// levels of nesting and numbers outside double's range are refused. Throws Error, its text
/// starting with `origin`.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& origin);

/// The whole of a regular file. Throws Error: missing, not a regular file, unreadable, above
/// `largest` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t largest);

/// `value` as it may stand in a message: JSON, on one line, at most about 60 characters.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace psgd
