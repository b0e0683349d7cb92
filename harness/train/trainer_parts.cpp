#include "harness/train/trainer_parts.h"

namespace psgd {
namespace {

at::ScalarType element_type(const Options& options) { return options.dtype == "float64" ? at::kDouble : at::kFloat; }

}  // namespace

std::shared_ptr<Model> make_model(const Options& options, const Dataset& dataset, torch::Device device) {
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  auto model = ModelRegistry::instance().make({options.model, static_cast<int>(options.base_width), dataset.classes});
  model->to(device, element_type(options));
  return model;
}

std::unique_ptr<Scheme> make_scheme(const Options& options) {
  const auto& entry = SchemeRegistry::instance().find(implementation_from(options.implementation), options.scheme);
  return entry.make(SchemeRegistry::resolve(entry, options.scheme_options));
}

std::unique_ptr<Engine> make_engine(const Options& options, Model& model, Scheme& scheme, Collectives& collectives) {
  EngineParts parts{[&model](const torch::Tensor& images) { return model.forward(images); }, model.parameters(),
                    model.buffers(), scheme, collectives};
  if (implementation_from(options.implementation) == Implementation::paper) return make_paper_engine(std::move(parts));
  return make_ddp_engine(std::move(parts), {.bucket_mib = options.bucket_mib,
                                            .first_bucket_mib = options.first_bucket_mib,
                                            .gradient_as_bucket_view = options.gradient_as_bucket_view,
                                            .find_unused_parameters = options.find_unused_parameters});
}

LoaderOptions loader_options(const Options& options, const Collectives& collectives) {
  return {.batch_size = options.batch_size, .worker = collectives.worker(), .workers = collectives.size(),
          .seed = static_cast<std::uint64_t>(options.seed), .augment = options.augment,
          .channels_last = options.channels_last, .dtype = element_type(options),
          .batches_per_epoch = options.batches_per_epoch, .before_batch = {}};
}

LoaderOptions test_loader_options(const Options& options, const Collectives& collectives) {
  LoaderOptions loader = loader_options(options, collectives);
  loader.batch_size = options.test_batch_size;
  return loader;
}

ScheduleOptions schedule_options(const Options& options) {
  return {.learning_rate = options.learning_rate, .workers = static_cast<int>(options.n_workers),
          .warmup_epochs = static_cast<double>(options.warmup_epochs),
          .decay_epochs = {options.decay_epochs.begin(), options.decay_epochs.end()},
          .decay_factor = options.decay_factor};
}

DatasetOptions dataset_options(const Options& options) {
  return {.name = options.dataset, .directory = options.data_dir, .train_images = options.train_images,
          .test_images = options.test_images};
}

}  // namespace psgd
