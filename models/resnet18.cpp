#include "models/resnet18.h"

#include "models/add_relu.h"

namespace psgd {
namespace {

torch::nn::Conv2d convolution(int in_channels, int out_channels, int kernel, int stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in_channels, out_channels, kernel)
                               .stride(stride)
                               .padding(kernel / 2)
                               .bias(false));
}

const RegisterModel registered({"resnet18",
                                "ResNet-18 for 32x32 images; base_width 64 is the paper's",
                                [](const ModelOptions& options) {
                                  return std::make_shared<ResNet18>(options.base_width,
                                                                    options.classes);
                                }});

}  // namespace

BasicBlock::BasicBlock(int in_channels, int out_channels, int stride) {
  conv1_ = register_module("conv1", convolution(in_channels, out_channels, 3, stride));
  bn1_ = register_module("bn1", torch::nn::BatchNorm2d(out_channels));
  conv2_ = register_module("conv2", convolution(out_channels, out_channels, 3, 1));
  bn2_ = register_module("bn2", torch::nn::BatchNorm2d(out_channels));
  torch::nn::Sequential shortcut;
  if (stride != 1 || in_channels != out_channels) {
    shortcut->push_back(convolution(in_channels, out_channels, 1, stride));
    shortcut->push_back(torch::nn::BatchNorm2d(out_channels));
  }
  shortcut_ = register_module("shortcut", shortcut);
}

torch::Tensor BasicBlock::forward(const torch::Tensor& input) {
  torch::Tensor hidden = bn1_(conv1_(input)).relu_();
  hidden = bn2_(conv2_(hidden));
  return add_relu_(hidden, shortcut_->is_empty() ? input : shortcut_->forward(input));
}

ResNet18::ResNet18(int base_width, int classes) {
  const int width = base_width;
  conv1_ = register_module("conv1", convolution(3, width, 3, 1));
  bn1_ = register_module("bn1", torch::nn::BatchNorm2d(width));
  layer1_ = register_module("layer1", stage(width, width, 1));
  layer2_ = register_module("layer2", stage(width, 2 * width, 2));
  layer3_ = register_module("layer3", stage(2 * width, 4 * width, 2));
  layer4_ = register_module("layer4", stage(4 * width, 8 * width, 2));
  linear_ = register_module("linear", torch::nn::Linear(8 * width, classes));
}

torch::nn::Sequential ResNet18::stage(int in_channels, int out_channels, int stride) {
  torch::nn::Sequential blocks;
  blocks->push_back(std::make_shared<BasicBlock>(in_channels, out_channels, stride));
  blocks->push_back(std::make_shared<BasicBlock>(out_channels, out_channels, 1));
  return blocks;
}

torch::Tensor ResNet18::forward(torch::Tensor images) {
  torch::Tensor hidden = bn1_(conv1_(images)).relu_();
  hidden = layer1_->forward(hidden);
  hidden = layer2_->forward(hidden);
  hidden = layer3_->forward(hidden);
  hidden = layer4_->forward(hidden);
  hidden = torch::avg_pool2d(hidden, 4);
  return linear_(hidden.flatten(1));
}

}  // namespace psgd
