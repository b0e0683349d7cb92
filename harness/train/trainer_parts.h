#pragma once

// From options to the parts of a run.

#include <torch/torch.h>

#include <memory>

#include "compressors/scheme.h"
#include "harness/config/options.h"
#include "harness/data/dataset.h"
#include "harness/data/loader.h"
#include "harness/engine/engine.h"
#include "harness/optim/schedule.h"
#include "models/model.h"

namespace psgd {

/// The model with its initial weights: drawn in float32 on the CPU after manual_seed(seed), so that
/// they are the same on every worker, device and type.
std::shared_ptr<Model> make_model(const Options& options, const Dataset& dataset,
                                  torch::Device device);

/// The scheme that the options name, with its own options.
std::unique_ptr<Scheme> make_scheme(const Options& options);

/// The engine of the options' implementation around `model`, which must outlive it, as all else.
std::unique_ptr<Engine> make_engine(const Options& options, Model& model, Scheme& scheme,
                                    Collectives& collectives);

LoaderOptions loader_options(const Options& options, const Collectives& collectives);
LoaderOptions test_loader_options(const Options& options, const Collectives& collectives);
ScheduleOptions schedule_options(const Options& options);
DatasetOptions dataset_options(const Options& options);

}  // namespace psgd
