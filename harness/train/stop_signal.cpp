#include "harness/train/stop_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

namespace psgd {
namespace {

volatile std::sig_atomic_t received_signal = 0;
volatile std::sig_atomic_t sigterm_event = -1;

/// Calls only what a signal handler may call.
void note(int signal) {
  if (signal == SIGINT && received_signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  received_signal = signal;
  if (signal != SIGTERM || sigterm_event < 0) return;
  const int error = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(sigterm_event, &one, sizeof one);
  errno = error;
}

}  // namespace

void catch_stop_signals() {
  if (sigterm_event < 0) sigterm_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = &note;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
}

int stop_signal() { return received_signal; }

int termination_event() { return sigterm_event; }

}  // namespace psgd
