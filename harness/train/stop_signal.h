#pragma once

namespace psgd {

/// From here on SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 (what launchers send as a warning) ask for a stop instead of
/// ending the process; a second SIGINT ends it at once.
void catch_stop_signals();

/// The signal that asked this worker to stop, 0 if none did.
int stop_signal();

}  // namespace psgd
