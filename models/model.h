#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace psgd {

/// What a configuration says about the model.
struct ModelOptions {
  std::string name;
  int base_width = 64;  ///< channels of the first stage; nets without stages ignore it
  int classes = 10;
};

/// A net that classifies images.
class Model : public torch::nn::Module {
 public:
  /// images: [batch, 3, 32, 32], contiguous or channels-last. Returns logits: [batch, classes].
  virtual torch::Tensor forward(torch::Tensor images) = 0;
};

/// What a model's file says about itself. Registering is all it takes to appear in configs and
/// help.
struct ModelEntry {
  std::string name;
  std::string summary;  ///< one line for `list`
  std::function<std::shared_ptr<Model>(const ModelOptions&)> make;
};

class ModelRegistry {
 public:
  static ModelRegistry& instance();

  /// Throws std::logic_error on a second entry with the same name.
  void add(ModelEntry entry);
  const std::vector<ModelEntry>& entries() const { return entries_; }

  /// Builds a model in float32 on the CPU. Its initial weights come from LibTorch's default
  /// generator, so torch::manual_seed(seed) immediately before gives the numbers that PyTorch gives
  /// in Python. Throws std::invalid_argument for an unknown name (listing the known ones) and for a
  /// width or a number of classes below 1.
  std::shared_ptr<Model> make(const ModelOptions& options) const;

 private:
  std::vector<ModelEntry> entries_;
};

/// Put one, static, into the model's .cpp file.
struct RegisterModel {
  explicit RegisterModel(ModelEntry entry) { ModelRegistry::instance().add(std::move(entry)); }
};

}  // namespace psgd
