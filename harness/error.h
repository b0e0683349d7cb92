#pragma once

#include <stdexcept>

namespace psgd {

/// Something went wrong that the person running the program can act on. Exit status 1.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The command line or a configuration asks for something impossible. Exit status 2.
struct UsageError : Error {
  using Error::Error;
};

/// Exit statuses of the program.
enum ExitStatus : int {
  kFinished = 0,
  kFailed = 1,
  kUsage = 2,
  kDiverged = 3,
  kInterrupted =
      75,  ///< a checkpoint was written; `train --resume` goes on (EX_TEMPFAIL of sysexits.h)
};

}  // namespace psgd
