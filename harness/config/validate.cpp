#include <algorithm>
#include <stdexcept>
#include <vector>

#include "compressors/nearest_name.h"
#include "compressors/scheme.h"
#include "harness/config/config_reader.h"
#include "harness/data/dataset.h"
#include "harness/error.h"
#include "models/model.h"

namespace psgd {
namespace {

/// "config.json: " where the key's value was set, to open a message with; empty for a default.
std::string origin_of(const Options& options, const std::string& key) {
  const auto found = options.origins.find(key);
  return found == options.origins.end() ? "" : found->second + ": ";
}

/// The scheme, looked for in the other implementation too, so that the message can say where it
/// exists.
const SchemeEntry& find_scheme(const Options& options) {
  const auto& registry = SchemeRegistry::instance();
  const Implementation wanted = implementation_from(options.implementation);
  const Implementation other =
      wanted == Implementation::ddp ? Implementation::paper : Implementation::ddp;
  try {
    return registry.find(wanted, options.scheme);
  } catch (const std::invalid_argument& unknown) {
    for (const auto& entry : registry.entries())
      if (entry.implementation == other && entry.name == options.scheme)
        throw UsageError(origin_of(options, "scheme") + "scheme '" + options.scheme +
                         "' exists in " + name(other) + " only, but the implementation is " +
                         name(wanted));
    throw UsageError(origin_of(options, "scheme") + unknown.what());
  }
}

void resolve_scheme(Options& options) {
  const auto& entry = find_scheme(options);
  try {
    options.scheme_options = SchemeRegistry::resolve(entry, options.scheme_options);
  } catch (const std::invalid_argument& error) {
    throw UsageError(origin_of(options, "scheme_options") + error.what());
  }
}

/// Refuses a name that the registry, whose entries are given, does not know.
template <class Entries>
void check_known(const Options& options, const std::string& key, const std::string& value,
                 const Entries& entries) {
  std::vector<std::string> known;
  for (const auto& entry : entries) known.push_back(entry.name);
  if (std::ranges::find(known, value) == known.end())
    throw UsageError(origin_of(options, key) + key + " '" + value + "' does not exist" +
                     nearest_name_hint(value, known));
}

void check_decay_epochs(const Options& options) {
  std::int64_t previous = 0;
  for (const auto epoch : options.decay_epochs) {
    const std::string found =
        origin_of(options, "decay_epochs") + "decay_epochs holds " + std::to_string(epoch);
    if (epoch <= previous)
      throw UsageError(found + " after " + std::to_string(previous) + ", but must increase");
    if (epoch >= options.epochs)
      throw UsageError(
          found + ", but the last of " + std::to_string(options.epochs) + " epochs is " +
          std::to_string(options.epochs - 1) +
          " (counted from 0): leave it out (`--decay-epochs []` for none) or raise epochs");
    previous = epoch;
  }
}

}  // namespace

void validate(Options& options) {
  resolve_scheme(options);
  check_known(options, "model", options.model, ModelRegistry::instance().entries());
  check_known(options, "dataset", options.dataset, DatasetRegistry::instance().entries());
  check_decay_epochs(options);
  if (options.train_images > 0) check_train_images(options, options.train_images);
}

void check_train_images(const Options& options, std::int64_t train_images) {
  const std::string available = std::to_string(train_images) + " training images";
  if (options.n_workers > train_images)
    throw UsageError(origin_of(options, "n_workers") + "n_workers is " +
                     std::to_string(options.n_workers) + ", but there are only " + available);
  // The list of images is padded to a multiple of the workers.
  const std::int64_t share = (train_images + options.n_workers - 1) / options.n_workers;
  if (options.batch_size > share)
    throw UsageError(origin_of(options, "batch_size") + "batch_size is " +
                     std::to_string(options.batch_size) + ", but a worker's share of " + available +
                     " over " + std::to_string(options.n_workers) + " workers is " +
                     std::to_string(share) + ": no whole batch");
  const std::int64_t batches = share / options.batch_size;
  if (options.batches_per_epoch > batches)
    throw UsageError(origin_of(options, "batches_per_epoch") + "batches_per_epoch is " +
                     std::to_string(options.batches_per_epoch) + ", but an epoch has only " +
                     std::to_string(batches) + " whole batches");
}

}  // namespace psgd
