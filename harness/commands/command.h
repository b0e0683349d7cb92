#pragma once

#include <functional>

namespace psgd {

/// What a command's parser leaves behind for main() to run; returns the exit status. Empty until a
/// command is given.
using CommandToRun = std::function<int()>;

}  // namespace psgd
