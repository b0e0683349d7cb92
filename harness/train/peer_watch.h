#pragma once

#include <sys/types.h>

#include <functional>
#include <thread>
#include <vector>

#include "harness/mpi/mpi_collectives.h"

namespace psgd {

/// Another worker on this host.
struct Peer {
  int worker = 0;
  pid_t process = 0;
};

/// The other workers in this process's host and process-id namespace, by number. All workers
/// together.
std::vector<Peer> find_peers(MpiCollectives& collectives);

/// Says what happened when a worker was killed or exited, since no code of ours runs in it any
/// more. A thread asleep until one of this host's workers ends, or SIGTERM comes, as the launcher
/// sends it to all when one has died; the launcher kills what is left a second later.
///
/// Must be destroyed before MPI is finalised: only then may peers end.
class PeerWatch {
 public:
  struct Calls {
    /// A peer is gone. Called on the first worker of the host that still lives.
    std::function<void(int worker)> on_death;
    /// SIGTERM came, and no peer has died since. Not an end yet: there may be time for a
    /// checkpoint.
    std::function<void()> on_termination;
  };
  /// The calls come from the watch's own thread. Where the system can't tell of another process's
  /// end (Linux before 5.3), deaths are noticed when SIGTERM comes.
  PeerWatch(int worker, std::vector<Peer> peers, Calls calls);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

 private:
  struct Watched {
    Peer peer;
    int descriptor = -1;
    bool gone = false;
  };
  void watch();
  bool wait(int milliseconds, bool& terminated);
  void note_deaths();

  int worker_;
  std::vector<Watched> peers_;
  Calls calls_;
  int end_ = -1;
  std::thread thread_;
};

}  // namespace psgd
