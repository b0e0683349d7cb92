#pragma once

#include <filesystem>
#include <string>

#include "harness/records/file_lock.h"

namespace psgd {

/// What mark_failed() did.
enum class Marked {
  now,         ///< run.json says "failed", with this message
  before,      ///< it has said why the run ended already: another worker was first
  impossible,  ///< it cannot be read or replaced
};

/// While it lives, the marking functions below wait.
class RunJsonLock {
 public:
  explicit RunJsonLock(const std::filesystem::path& folder);

 private:
  FileLock lock_;
};

/// Sets a run's status to "failed" with a message, if run.json still says "running", or no more
/// than that the launcher ended the job. Any worker may call this at any time, also from another
/// thread; of several that call it at once, one is first. Never throws.
Marked mark_failed(const std::filesystem::path& folder, const std::string& message);

/// Likewise, with the message that the launcher ended the job, until a worker comes that knows why.
Marked mark_ended_by_launcher(const std::filesystem::path& folder, const std::string& phase);

}  // namespace psgd
