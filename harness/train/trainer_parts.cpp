#include "harness/train/trainer_parts.h"

namespace psgd {
namespace {

at::ScalarType element_type(const Options& options) {
  return options.dtype == "float64" ? at::kDouble : at::kFloat;
}

/// With images channels-last, LibTorch gives the gradients of kernels of one pixel the strides of
/// that layout. c10d's Reducer warns on every worker where a gradient's strides are not its
/// parameter's, so the parameter gets them too: of a single pixel, both layouts have the same order
/// in memory.
void take_strides_of_gradients(Model& model) {
  for (auto& parameter : model.parameters())
    if (parameter.dim() == 4 && parameter.size(2) == 1 && parameter.size(3) == 1) {
      const auto channels = parameter.size(1);
      parameter.set_data(
          parameter.detach().as_strided(parameter.sizes(), {channels, 1, channels, channels}));
    }
}

}  // namespace

std::shared_ptr<Model> make_model(const Options& options, const Dataset& dataset,
                                  torch::Device device) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  auto model = ModelRegistry::instance().make(
      {options.model, static_cast<int>(options.base_width), dataset.classes});
  model->to(device, element_type(options));
  if (options.channels_last) take_strides_of_gradients(*model);
  return model;
}

std::unique_ptr<Scheme> make_scheme(const Options& options) {
  const auto& entry =
      SchemeRegistry::instance().find(implementation_from(options.implementation), options.scheme);
  return entry.make(SchemeRegistry::resolve(entry, options.scheme_options));
}

std::unique_ptr<Engine> make_engine(const Options& options, Model& model, Scheme& scheme,
                                    Collectives& collectives) {
  EngineParts parts{[&model](const torch::Tensor& images) { return model.forward(images); },
                    model.parameters(), model.buffers(), scheme, collectives};
  if (implementation_from(options.implementation) == Implementation::paper)
    return make_paper_engine(std::move(parts));
  return make_ddp_engine(std::move(parts),
                         {.bucket_mib = options.bucket_mib,
                          .first_bucket_mib = options.first_bucket_mib,
                          .gradient_as_bucket_view = options.gradient_as_bucket_view,
                          .find_unused_parameters = options.find_unused_parameters});
}

LoaderOptions loader_options(const Options& options, const Collectives& collectives) {
  return {.batch_size = options.batch_size,
          .worker = collectives.worker(),
          .workers = collectives.size(),
          .seed = static_cast<std::uint64_t>(options.seed),
          .augment = options.augment,
          .channels_last = options.channels_last,
          .dtype = element_type(options),
          .batches_per_epoch = options.batches_per_epoch,
          .before_batch = {}};
}

LoaderOptions test_loader_options(const Options& options, const Collectives& collectives) {
  LoaderOptions loader = loader_options(options, collectives);
  loader.batch_size = options.test_batch_size;
  return loader;
}

ScheduleOptions schedule_options(const Options& options) {
  const bool original_is_per_batch = options.implementation == name(Implementation::paper);
  return {.learning_rate = options.learning_rate,
          .workers = static_cast<int>(options.n_workers),
          .warmup_epochs = static_cast<double>(options.warmup_epochs),
          .decay_epochs = {options.decay_epochs.begin(), options.decay_epochs.end()},
          .decay_factor = options.decay_factor,
          .per_batch = options.learning_rate_per == "original"
                           ? original_is_per_batch
                           : options.learning_rate_per == "batch"};
}

DatasetOptions dataset_options(const Options& options) {
  return {.name = options.dataset,
          .directory = options.data_dir,
          .train_images = options.train_images,
          .test_images = options.test_images};
}

}  // namespace psgd
