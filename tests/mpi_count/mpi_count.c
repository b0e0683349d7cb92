// Counts what a worker hands to MPI, through MPI's profiling interface: loaded with LD_PRELOAD, it
// stands between the program and MPI. At MPI_Finalize it writes count-<worker>.json to the folder
// named by PSGD_COUNT_FOLDER: for each function {"calls", "bytes"}, bytes being the payload of this
// worker's own call (count x size of a type).

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum Function { kAllreduce, kIallreduce, kAllgather, kBcast, kIbarrier, kOther, kFunctions };

static const char* const kNames[kFunctions] = {"allreduce", "iallreduce", "allgather",
                                               "bcast",     "ibarrier",   "other"};

// The hook's thread and the main thread take turns at MPI.
static atomic_llong calls[kFunctions];
static atomic_llong bytes[kFunctions];

static void count(enum Function function, int elements, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  atomic_fetch_add(&calls[function], 1);
  atomic_fetch_add(&bytes[function], (long long)elements * size);
}

int MPI_Allreduce(const void* in, void* out, int elements, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  count(kAllreduce, elements, type);
  return PMPI_Allreduce(in, out, elements, type, op, comm);
}

int MPI_Iallreduce(const void* in, void* out, int elements, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  count(kIallreduce, elements, type);
  return PMPI_Iallreduce(in, out, elements, type, op, comm, request);
}

int MPI_Allgather(const void* in, int elements, MPI_Datatype type, void* out, int received,
                  MPI_Datatype received_type, MPI_Comm comm) {
  count(kAllgather, elements, type);
  return PMPI_Allgather(in, elements, type, out, received, received_type, comm);
}

int MPI_Bcast(void* data, int elements, MPI_Datatype type, int root, MPI_Comm comm) {
  count(kBcast, elements, type);
  return PMPI_Bcast(data, elements, type, root, comm);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  count(kIbarrier, 0, MPI_BYTE);
  return PMPI_Ibarrier(comm, request);
}

// Other ways for data to leave; the program is not known to use any.

int MPI_Send(const void* data, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(kOther, elements, type);
  return PMPI_Send(data, elements, type, to, tag, comm);
}

int MPI_Isend(const void* data, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(kOther, elements, type);
  return PMPI_Isend(data, elements, type, to, tag, comm, request);
}

int MPI_Reduce(const void* in, void* out, int elements, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  count(kOther, elements, type);
  return PMPI_Reduce(in, out, elements, type, op, root, comm);
}

int MPI_Gather(const void* in, int elements, MPI_Datatype type, void* out, int received,
               MPI_Datatype received_type, int root, MPI_Comm comm) {
  count(kOther, elements, type);
  return PMPI_Gather(in, elements, type, out, received, received_type, root, comm);
}

int MPI_Allgatherv(const void* in, int elements, MPI_Datatype type, void* out, const int* received,
                   const int* displacements, MPI_Datatype received_type, MPI_Comm comm) {
  count(kOther, elements, type);
  return PMPI_Allgatherv(in, elements, type, out, received, displacements, received_type, comm);
}

int MPI_Ibcast(void* data, int elements, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  count(kOther, elements, type);
  return PMPI_Ibcast(data, elements, type, root, comm, request);
}

int MPI_Iallgather(const void* in, int elements, MPI_Datatype type, void* out, int received,
                   MPI_Datatype received_type, MPI_Comm comm, MPI_Request* request) {
  count(kOther, elements, type);
  return PMPI_Iallgather(in, elements, type, out, received, received_type, comm, request);
}

int MPI_Reduce_scatter_block(const void* in, void* out, int elements, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  int workers = 0;
  PMPI_Comm_size(comm, &workers);
  for (int worker = 0; worker < workers; ++worker) count(kOther, elements, type);
  return PMPI_Reduce_scatter_block(in, out, elements, type, op, comm);
}

int MPI_Alltoall(const void* in, int elements, MPI_Datatype type, void* out, int received,
                 MPI_Datatype received_type, MPI_Comm comm) {
  count(kOther, elements, type);
  return PMPI_Alltoall(in, elements, type, out, received, received_type, comm);
}

static void write_counts(int worker) {
  const char* folder = getenv("PSGD_COUNT_FOLDER");
  char path[4096];
  if (folder == NULL ||
      snprintf(path, sizeof path, "%s/count-%d.json", folder, worker) >= (int)sizeof path) {
    fprintf(stderr, "mpi_count: PSGD_COUNT_FOLDER must name a folder\n");
    return;
  }
  FILE* file = fopen(path, "w");
  if (file == NULL) {
    perror(path);
    return;
  }
  for (int i = 0; i < kFunctions; ++i)
    fprintf(file, "%s\"%s\": {\"calls\": %lld, \"bytes\": %lld}", i == 0 ? "{" : ",\n ", kNames[i],
            (long long)atomic_load(&calls[i]), (long long)atomic_load(&bytes[i]));
  fprintf(file, "}\n");
  fclose(file);
}

int MPI_Finalize(void) {
  int worker = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &worker);
  write_counts(worker);
  return PMPI_Finalize();
}
