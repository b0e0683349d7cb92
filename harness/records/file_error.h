#pragma once

#include <cstring>
#include <filesystem>
#include <string>

#include "harness/error.h"

namespace psgd {

/// Throws Error: "<path>: <what>: <the system's text for error number `error`>".
[[noreturn]] inline void fail_on_file(const std::filesystem::path& path, const char* what,
                                      int error) {
  throw Error(path.string() + ": " + what + ": " + std::strerror(error));
}

}  // namespace psgd
