#pragma once

#include "models/model.h"

namespace psgd {

/// Two 3x3 convolutions with batch norm, and a shortcut around them.
class BasicBlock : public torch::nn::Module {
 public:
  BasicBlock(int in_channels, int out_channels, int stride);
  /// [batch, in_channels, h, w] -> [batch, out_channels, h / stride, w / stride]
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::Conv2d conv2_{nullptr};
  torch::nn::BatchNorm2d bn2_{nullptr};
  torch::nn::Sequential shortcut_{nullptr};  ///< empty where the shape stays the same
};

/// ResNet-18 (He et al. 2016, arXiv 1512.03385) for 32x32 images, as the PowerSGD paper trains it:
/// a 3x3 stem without pooling, stages of base_width x 1, 2, 4, 8 channels with two blocks each, 4x4
/// average pool. Base width 64: 62 parameters with 11,173,962 elements.
///
/// Names and order of the parameters and the order in which they are drawn are those of the Python
/// code (conv1, bn1, layer1.0.conv1, ..., layer2.0.shortcut.0, ..., linear).
class ResNet18 : public Model {
 public:
  explicit ResNet18(int base_width = 64, int classes = 10);
  torch::Tensor forward(torch::Tensor images) override;

 private:
  torch::nn::Sequential stage(int in_channels, int out_channels, int stride);

  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::Sequential layer1_{nullptr};
  torch::nn::Sequential layer2_{nullptr};
  torch::nn::Sequential layer3_{nullptr};
  torch::nn::Sequential layer4_{nullptr};
  torch::nn::Linear linear_{nullptr};
};

}  // namespace psgd
