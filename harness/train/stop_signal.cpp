#include "harness/train/stop_signal.h"

#include <csignal>

namespace psgd {
namespace {

volatile std::sig_atomic_t received = 0;

void note(int signal) {
  if (signal == SIGINT && received == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  received = signal;
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = &note;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaction(signal, &action, nullptr);
}

int stop_signal() { return received; }

}  // namespace psgd
