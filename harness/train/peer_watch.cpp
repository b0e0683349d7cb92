#include "harness/train/peer_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "harness/error.h"
#include "harness/mpi/session.h"
#include "harness/train/stop_signal.h"

namespace psgd {
namespace {

/// After SIGTERM, how long a worker's death has to become known before SIGTERM itself counts as the
/// reason. Less than the second after which mpirun kills.
constexpr int kPatience = 300;  // ms

/// A descriptor that poll() finds readable when the process has ended; -1 where the system has no
/// such thing.
int open_process(pid_t process) {
#ifdef SYS_pidfd_open
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
#else
  (void)process;
  return -1;
#endif
}

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return descriptor >= 0 && ::poll(&entry, 1, 0) > 0;
}

/// Process ids mean something only within one namespace of one host (containers may give each
/// worker its own).
std::string namespace_of_process_ids() {
  std::error_code error;
  const auto target = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return host_name() + " " + (error ? "process " + std::to_string(::getpid()) : target.string());
}

/// Ten digits whatever the number: what a run sends to begin with does not depend on its process
/// ids.
std::string this_process() {
  const std::string digits = std::to_string(::getpid());
  return std::string(10 - digits.size(), '0') + digits;
}

}  // namespace

std::vector<Peer> find_peers(MpiCollectives& collectives) {
  const std::string mine = namespace_of_process_ids();
  const auto all = collectives.all_gather_text(this_process() + " " + mine);
  std::vector<Peer> peers;
  for (int worker = 0; worker < collectives.size(); ++worker) {
    const auto& text = all[static_cast<std::size_t>(worker)];
    const auto space = text.find(' ');
    if (worker != collectives.worker() && text.substr(space + 1) == mine)
      peers.push_back({worker, static_cast<pid_t>(std::stol(text.substr(0, space)))});
  }
  return peers;
}

PeerWatch::PeerWatch(int worker, std::vector<Peer> peers, Calls calls)
    : worker_(worker), calls_(std::move(calls)), end_(::eventfd(0, EFD_CLOEXEC)) {
  if (end_ < 0) throw Error("no descriptor is left for the watch over other workers");
  for (const auto& peer : peers) peers_.push_back({peer, open_process(peer.process), false});
  thread_ = std::thread([this] { watch(); });
}

PeerWatch::~PeerWatch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(end_, &one, sizeof one);
  thread_.join();
  for (const auto& watched : peers_)
    if (watched.descriptor >= 0) ::close(watched.descriptor);
  ::close(end_);
}

/// Sleeps until a peer ends, SIGTERM comes (unless it has already) or time is up. False: the watch
/// is to end.
bool PeerWatch::wait(int milliseconds, bool& terminated) {
  std::vector<pollfd> entries = {{end_, POLLIN, 0}};
  if (!terminated && termination_event() >= 0) entries.push_back({termination_event(), POLLIN, 0});
  for (const auto& watched : peers_)
    if (watched.descriptor >= 0 && !watched.gone)
      entries.push_back({watched.descriptor, POLLIN, 0});
  while (::poll(entries.data(), entries.size(), milliseconds) < 0 && errno == EINTR) {
  }
  terminated = terminated || is_readable(termination_event());
  return (entries.front().revents & POLLIN) == 0;
}

void PeerWatch::note_deaths() {
  int died = -1;
  for (auto& watched : peers_) {
    if (watched.gone) continue;
    watched.gone = watched.descriptor >= 0 ? is_readable(watched.descriptor)
                                           : ::kill(watched.peer.process, 0) != 0 && errno == ESRCH;
    if (watched.gone && died < 0) died = watched.peer.worker;
  }
  const bool speaks = std::none_of(peers_.begin(), peers_.end(), [&](const Watched& watched) {
    return watched.peer.worker < worker_ && !watched.gone;
  });
  if (died >= 0 && speaks) calls_.on_death(died);
}

void PeerWatch::watch() {
  bool terminated = false;
  while (wait(-1, terminated)) {
    note_deaths();
    if (!terminated) continue;
    if (!wait(kPatience, terminated)) return;
    note_deaths();
    calls_.on_termination();
    while (wait(-1, terminated)) note_deaths();
    return;
  }
}

}  // namespace psgd
