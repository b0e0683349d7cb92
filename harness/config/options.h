#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compressors/scheme_options.h"

namespace psgd {

/// What a run is told: every setting with its default. Read by config_reader.h, stored resolved in
/// run.json. visit_options() below must name every member.
struct Options {
  std::string name;
  std::string implementation = "PyTorch DDP";
  std::string scheme = "full-precision";
  OptionValues scheme_options;
  std::int64_t n_workers = 16;
  std::int64_t seed = 1;

  std::string model = "resnet18";
  std::int64_t base_width = 64;
  std::string dtype = "float32";
  std::string dataset = "cifar10";
  std::string data_dir;
  std::int64_t train_images = 0;
  std::int64_t test_images = 0;
  bool augment = true;

  std::int64_t batch_size = 128;
  std::int64_t test_batch_size = 250;
  std::int64_t epochs = 300;
  std::int64_t batches_per_epoch = 0;
  double learning_rate = 0.1;
  std::string learning_rate_per = "original";
  double momentum = 0.9;
  double weight_decay = 1e-4;
  std::int64_t warmup_epochs = 5;
  std::vector<std::int64_t> decay_epochs = {150, 250};
  double decay_factor = 10;
  std::int64_t running_average_reset_epochs = 30;

  bool channels_last = false;
  std::string device = "auto";
  std::int64_t threads = 0;
  std::string wait = "auto";

  std::int64_t test_every = 1;
  std::int64_t check_every = 50;
  std::string on_divergence = "stop";
  double watchdog_seconds = 300;
  std::int64_t checkpoint_every_epochs = 1;
  double checkpoint_every_minutes = 0;
  bool save_weights = false;

  double bucket_mib = 25;
  double first_bucket_mib = 1;
  bool gradient_as_bucket_view = true;
  bool find_unused_parameters = false;

  std::int64_t warmup_steps = 3;
  std::int64_t timed_steps = 20;

  /// Where each value that is not a default came from, for messages: a file, "--set a=b" or "--a
  /// b".
  std::map<std::string, std::string> origins;
};

/// What values an option may take, beside its type.
struct Limits {
  double minimum =
      -std::numeric_limits<double>::infinity();  ///< numbers, inclusive; each element of a list
  double maximum = std::numeric_limits<double>::infinity();  ///< numbers, inclusive
  std::vector<std::string> choices = {};                     ///< empty: any
};

inline Limits anything() { return {}; }
inline Limits range(double minimum, double maximum) { return {minimum, maximum, {}}; }
inline Limits one_of(std::vector<std::string> choices) {
  Limits limits;
  limits.choices = std::move(choices);
  return limits;
}

/// The one table of options. Calls visit(key, member, limits, help) for each, in the order of the
/// resolved dump. Reading, --set, command-line options, help, range checks and the dump all come
/// from it.
template <class OptionsOrConst, class Visitor>
void visit_options(OptionsOrConst& o, Visitor&& visit) {
  constexpr double kLarge = 1e9;
  constexpr double kExact = 9007199254740991;  // what every reader of JSON keeps exactly
  visit("name", o.name, anything(), "the run's name; empty: the output folder's name");
  visit("implementation", o.implementation, one_of({"PyTorch DDP", "Paper"}),
        "which original to reproduce");
  visit("scheme", o.scheme, anything(), "how gradients are averaged (see `list`)");
  visit("scheme_options", o.scheme_options, anything(),
        "the scheme's own options, an object (see `list`)");
  visit("n_workers", o.n_workers, range(1, 65536),
        "number of workers; must be what the launcher starts");
  visit("seed", o.seed, range(0, kExact), "seed of the initial weights and of the augmentation");

  visit("model", o.model, anything(), "the network (see `list`)");
  visit("base_width", o.base_width, one_of({"8", "16", "32", "64"}),
        "channels of the network's first stage");
  visit("dtype", o.dtype, one_of({"float32", "float64"}), "element type of weights and gradients");
  visit("dataset", o.dataset, anything(), "the data set (see `list`)");
  visit("data_dir", o.data_dir, anything(), "folder with the data set's files");
  visit("train_images", o.train_images, range(0, kLarge),
        "use only the first N training images; 0 = all");
  visit("test_images", o.test_images, range(0, kLarge),
        "use only the first N test images; 0 = all");
  visit("augment", o.augment, anything(), "random crop and flip of training images");

  visit("batch_size", o.batch_size, range(1, 1e6), "images per worker and batch");
  visit("test_batch_size", o.test_batch_size, range(1, 1e6),
        "images per worker and batch in tests");
  visit("epochs", o.epochs, range(1, 1e6), "epochs to train");
  visit("batches_per_epoch", o.batches_per_epoch, range(0, kLarge),
        "stop each epoch after N batches; 0 = never");
  visit("learning_rate", o.learning_rate, range(0, 1000), "learning rate per worker");
  visit("learning_rate_per", o.learning_rate_per, one_of({"original", "epoch", "batch"}),
        "when warm-up changes the learning rate; original: per epoch in PyTorch DDP, per batch in "
        "Paper");
  visit("momentum", o.momentum, range(0, 1), "momentum");
  visit("weight_decay", o.weight_decay, range(0, 10), "weight decay");
  visit("warmup_epochs", o.warmup_epochs, range(0, 1e6),
        "epochs over which the learning rate grows n_workers-fold");
  visit("decay_epochs", o.decay_epochs, range(1, 1e6),
        "epochs (from 0) at which the learning rate is divided");
  visit("decay_factor", o.decay_factor, range(1, 1e6), "what the learning rate is divided by");
  visit("running_average_reset_epochs", o.running_average_reset_epochs, range(1, 1e6),
        "Paper only: epochs between restarts of the running average of the weights");

  visit("channels_last", o.channels_last, anything(),
        "feed images in channels-last layout; activations follow");
  visit("device", o.device, one_of({"auto", "cpu", "cuda"}),
        "where to compute; auto: cuda where there is one");
  visit("threads", o.threads, range(0, 4096),
        "threads per worker; 0 = cores / workers of the machine, at least 1");
  visit("wait", o.wait, one_of({"auto", "spin", "yield", "sleep"}),
        "how a worker waits in a collective");

  visit("test_every", o.test_every, range(1, 1e6),
        "epochs between tests; the last epoch is always tested");
  visit("check_every", o.check_every, range(0, kLarge),
        "batches between checks that all workers hold the same weights; 0 = never");
  visit("on_divergence", o.on_divergence, one_of({"stop", "continue"}),
        "what to do once the loss is not finite");
  visit("watchdog_seconds", o.watchdog_seconds, range(1, 1e6),
        "a worker that stands still this long ends the job");
  visit("checkpoint_every_epochs", o.checkpoint_every_epochs, range(0, 1e6),
        "epochs between checkpoints; 0 = never");
  visit("checkpoint_every_minutes", o.checkpoint_every_minutes, range(0, 1e6),
        "minutes likewise; 0 = never");

  visit("save_weights", o.save_weights, anything(),
        "write the final weights to weights.pt, for Python's torch.load");

  visit("bucket_mib", o.bucket_mib, range(0.001, 65536),
        "PyTorch DDP: size of a gradient bucket, MiB");
  visit("first_bucket_mib", o.first_bucket_mib, range(0.001, 65536),
        "PyTorch DDP: size of the first bucket, MiB");
  visit("gradient_as_bucket_view", o.gradient_as_bucket_view, anything(),
        "PyTorch DDP: gradients live in the buckets");
  visit("find_unused_parameters", o.find_unused_parameters, anything(),
        "PyTorch DDP: look for parameters without gradient in every step");

  visit("warmup_steps", o.warmup_steps, range(0, 1e6), "`reduce` only: untimed repetitions");
  visit("timed_steps", o.timed_steps, range(1, 1e6), "`reduce` only: timed repetitions");
}

}  // namespace psgd
