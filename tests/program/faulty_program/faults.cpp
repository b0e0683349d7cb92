#include "tests/program/faulty_program/faults.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace psgd::test {
namespace {

constexpr const char* kPlaces[] = {"load", "forward", "reduce", "test"};

int this_worker() {
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  return text == nullptr ? 0 : std::atoi(text);
}

void perform(const std::string& action) {
  using namespace std::chrono_literals;
  if (action == "throw") throw std::runtime_error("the fault that was asked for");
  if (action == "throw_int") throw 1;
  if (action == "exit") std::exit(0);
  if (action == "vanish") ::_exit(0);
  if (action == "kill") ::kill(::getpid(), SIGKILL);
  if (action == "freeze") ::kill(::getpid(), SIGSTOP);
  if (action == "stop") ::kill(::getpid(), SIGUSR1);
  if (action == "slow") std::this_thread::sleep_for(150ms);
  while (action == "stall") std::this_thread::sleep_for(1h);
}

}  // namespace

void act(Place place) {
  static std::array<std::atomic<int>, std::size(kPlaces)> calls{};
  const auto index = static_cast<std::size_t>(place);
  const int call = ++calls[index];
  const char* text = std::getenv("PSGD_FAULT");
  std::istringstream faults(text == nullptr ? "" : text);
  for (std::string fault; std::getline(faults, fault, ';');) {
    std::istringstream words(fault);
    std::string where, action;
    int worker = 0, number = 0;
    if (!(words >> where >> action >> worker >> number))
      throw std::logic_error("PSGD_FAULT is wrong: " + fault);
    const bool is_time = action == "slow" ? call >= number : call == number;
    if (where == kPlaces[index] && is_time && (worker == this_worker() || worker < 0))
      perform(action);
  }
}

}  // namespace psgd::test
