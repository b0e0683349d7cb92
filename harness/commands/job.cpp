#include "harness/commands/job.h"

#include <malloc.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "harness/error.h"
#include "harness/train/agreement.h"
#include "harness/train/device.h"
#include "harness/train/trainer_parts.h"
#include "harness/train/worker_table.h"

namespace psgd {
namespace {

/// A training step allocates and frees the same large tensors again and again. glibc gives memory
/// of that size back to the system at once, and the next step pays for clearing every page anew:
/// let it keep what it has.
void keep_freed_memory() {
  constexpr int kLarge = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kLarge);
  mallopt(M_TOP_PAD, 16 << 20);
}

void check_workers(const Options& options, const MpiSession& session) {
  if (options.n_workers == session.workers()) return;
  const std::string n = std::to_string(options.n_workers);
  throw UsageError("the configuration is for " + n + " workers, but the launcher started " +
                   std::to_string(session.workers()) + "; start it with scripts/launch.sh " + n +
                   " powersgd-bench ... (or mpirun -n " + n + ", srun -n " + n +
                   "), or --set n_workers=" + std::to_string(session.workers()));
}

/// This worker's number, as the launcher told it; 0 without a launcher.
int worker_number_from_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* text = std::getenv(variable)) return std::atoi(text);
  return 0;
}

std::string placed(const MpiSession& session, const std::string& message) {
  return "worker " + std::to_string(session.worker()) + " on " + host_name() + ": " + message;
}

/// Paper communicates from the main thread alone; in PyTorch DDP main and hook thread take turns.
/// What cannot be read here is reported once MPI runs, when the workers can agree on one message.
int thread_level_for(const OptionArguments& arguments) {
  try {
    return read_options(arguments).implementation == name(Implementation::paper)
               ? MPI_THREAD_FUNNELED
               : MPI_THREAD_SERIALIZED;
  } catch (const std::exception&) {
    return MPI_THREAD_SERIALIZED;
  }
}

int work_on(const OptionArguments& arguments, MpiSession& session,
            const std::function<int(Job&)>& work, Job& job) {
  const int cores = session.local_cores();
  job.oversubscribed = is_oversubscribed(cores, session.local_workers());
  // How to wait is one of the options on which the workers have yet to agree.
  job.collectives = std::make_unique<MpiCollectives>(session.communicator(),
                                                     job.oversubscribed ? Wait::yield : Wait::spin);
  agree(*job.collectives, [&] {
    job.options = read_options(arguments);
    validate(job.options);
    make_scheme(job.options);  // refuses options that contradict each other
    check_workers(job.options, session);
    job.device = choose_device(job.options.device, session.local_worker());
  });
  job.collectives = std::make_unique<MpiCollectives>(
      session.communicator(), wait_from(job.options.wait, job.oversubscribed));
  job.threads = job.options.threads > 0 ? static_cast<int>(job.options.threads)
                                        : default_threads(cores, session.local_workers());
  torch::set_num_threads(job.threads);
  job.collectives->self_test();
  return work(job);
}

}  // namespace

int run_job(const OptionArguments& arguments, const std::function<int(Job&)>& work,
            const std::function<void(const std::string&)>& on_failure) {
  keep_freed_memory();
  Job job;
  try {
    job.session = std::make_unique<MpiSession>(thread_level_for(arguments));
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return kFailed;
  }
  if (job.session->worker() != 0) spdlog::set_level(spdlog::level::err);
  try {
    const int status = work_on(arguments, *job.session, work, job);
    job.collectives.reset();
    return status;
  } catch (const AgreedError& error) {
    if (job.session->worker() == 0) spdlog::error("{}", error.what());
    job.collectives.reset();
    return error.status;
  } catch (const c10::Error& error) {
    on_failure(placed(*job.session, error.what_without_backtrace()));
  } catch (const std::exception& error) {
    on_failure(placed(*job.session, error.what()));
  }
  MpiSession::abort(kFailed);
}

int end_at_command_line(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_error = error.get_exit_code() != 0;
  if (worker_number_from_launcher() == 0)
    app.exit(error);
  else if (is_error)
    // The launcher kills all when one has failed; worker 0 must have had its say by then.
    std::this_thread::sleep_for(std::chrono::seconds(2));
  return is_error ? kUsage : kFinished;
}

}  // namespace psgd
