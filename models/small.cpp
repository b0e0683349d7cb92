// Nets without batch norm, for tests in which k workers must compute what one worker does on the
// joined batch.

#include "models/model.h"

namespace psgd {
namespace {

constexpr int kInputs = 3 * 32 * 32;
constexpr int kHidden = 64;

/// 3072 -> 64 -> ReLU -> classes.
class Mlp : public Model {
 public:
  explicit Mlp(int classes) {
    hidden_ = register_module("hidden", torch::nn::Linear(kInputs, kHidden));
    output_ = register_module("output", torch::nn::Linear(kHidden, classes));
  }
  torch::Tensor forward(torch::Tensor images) override {
    return output_(hidden_(images.flatten(1)).relu_());
  }

 private:
  torch::nn::Linear hidden_{nullptr};
  torch::nn::Linear output_{nullptr};
};

/// 3072 -> classes.
class LinearModel : public Model {
 public:
  explicit LinearModel(int classes) {
    linear_ = register_module("linear", torch::nn::Linear(kInputs, classes));
  }
  torch::Tensor forward(torch::Tensor images) override { return linear_(images.flatten(1)); }

 private:
  torch::nn::Linear linear_{nullptr};
};

const RegisterModel registered_mlp({"mlp", "one hidden layer of 64, no batch norm; for tests",
                                    [](const ModelOptions& options) {
                                      return std::make_shared<Mlp>(options.classes);
                                    }});
const RegisterModel registered_linear({"linear", "logistic regression on the pixels; for tests",
                                       [](const ModelOptions& options) {
                                         return std::make_shared<LinearModel>(options.classes);
                                       }});

}  // namespace
}  // namespace psgd
