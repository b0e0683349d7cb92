#pragma once

namespace psgd {

/// From here on SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 (what launchers send as a warning) ask for a
/// stop instead of ending the process; a second SIGINT ends it at once. To be called before MPI
/// starts, so that no signal that the launcher passes on comes too early.
void catch_stop_signals();

/// The signal that asked this worker to stop, 0 if none did.
int stop_signal();

/// A descriptor that poll() finds readable once SIGTERM has come; -1 before catch_stop_signals().
/// mpirun sends SIGTERM when a worker has died, and kills the others a second later: who wants to
/// say something must do it then.
int termination_event();

}  // namespace psgd
