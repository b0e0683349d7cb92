// A data set, a model and a scheme that work like real ones, through the ordinary registries, until
// a fault is due.

#include "compressors/full_precision.h"
#include "harness/data/dataset.h"
#include "models/model.h"
#include "tests/program/faulty_program/faults.h"

namespace psgd::test {
namespace {

Dataset load(const DatasetOptions& options) {
  act(Place::load);
  DatasetOptions inner = options;
  inner.name = "synthetic";
  return load_dataset(inner);
}

class FaultyModel final : public Model {
 public:
  explicit FaultyModel(ModelOptions options) {
    options.name = "resnet18";
    inner_ = register_module("inner", ModelRegistry::instance().make(options));
  }
  torch::Tensor forward(torch::Tensor images) override {
    act(is_training() ? Place::forward : Place::test);
    return inner_->forward(images);
  }

 private:
  std::shared_ptr<Model> inner_;
};

class FaultyScheme final : public Scheme {
 public:
  explicit FaultyScheme(Implementation implementation) : inner_(implementation) {}
  void reduce(Bucket& bucket, Collectives& collectives, PhaseClock& clock) override {
    act(Place::reduce);
    inner_.reduce(bucket, collectives, clock);
  }

 private:
  FullPrecision inner_;
};

SchemeEntry entry(Implementation implementation) {
  return {"faulty",
          implementation,
          "full precision, until it fails",
          {},
          [](const OptionValues&) { return std::string("faulty"); },
          [implementation](const OptionValues&) {
            return std::make_unique<FaultyScheme>(implementation);
          }};
}

const RegisterDataset registered_dataset({"faulty", "synthetic, until it fails", load});
const RegisterModel registered_model({"faulty", "resnet18, until it fails",
                                      [](const ModelOptions& options) {
                                        return std::make_shared<FaultyModel>(options);
                                      }});
const RegisterScheme registered_ddp(entry(Implementation::ddp));
const RegisterScheme registered_paper(entry(Implementation::paper));

}  // namespace
}  // namespace psgd::test
