#pragma once

#include <string>

#include "compressors/scheme.h"

namespace psgd {

/// Whether weight decay applies to a parameter, by its name in the model ("layer1.0.bn1.weight").
///
/// Both originals exempt what matches `.*\.bn\d+.(weight|bias)`. Paper applies that to the names as
/// they are, so its top-level bn1, which has no dot before it, decays. PyTorch DDP's names begin
/// with "module.", so its top-level bn1 is exempt. The shortcut's batch norms ("shortcut.1") decay
/// in both.
bool has_weight_decay(Implementation implementation, const std::string& parameter);

}  // namespace psgd
