#include "harness/mpi/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "harness/mpi/mpi_check.h"

namespace psgd {
namespace {

/// Maps `size` bytes of the shared memory called `name`; null if that cannot be.
void* map_shared(const char* name, int flags, std::size_t size) {
  const int file = shm_open(name, flags | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if ((flags & O_CREAT) == 0 || posix_fallocate(file, 0, static_cast<off_t>(size)) == 0)
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

/// The first worker makes the memory, the others open it, and then its name goes.
HostMemory::HostMemory(MPI_Comm host, std::size_t size) : size_(size) {
  int worker = 0;
  PSGD_MPI(MPI_Comm_rank(host, &worker));
  char name[64] = {};
  if (worker == 0) {
    // By chance, since containers may share memory and yet count their processes each from one.
    std::random_device random;
    std::snprintf(name, sizeof name, "/powersgd-bench-%08x%08x", random(), random());
    memory_ = map_shared(name, O_CREAT | O_EXCL, size);
  }
  PSGD_MPI(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, host));
  if (worker != 0) memory_ = map_shared(name, 0, size);
  PSGD_MPI(MPI_Barrier(host));
  if (worker == 0) shm_unlink(name);
}

HostMemory::~HostMemory() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

MPI_Comm workers_of_this_host(MPI_Comm communicator) {
  int worker = 0;
  PSGD_MPI(MPI_Comm_rank(communicator, &worker));
  MPI_Comm host = MPI_COMM_NULL;
  PSGD_MPI(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, worker, MPI_INFO_NULL, &host));
  return host;
}

}  // namespace psgd
