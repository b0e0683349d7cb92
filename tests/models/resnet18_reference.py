"""ResNet-18 for 32x32 images in PyTorch's Python: resnet18_reference.py SEED WIDTH

Prints a line for each parameter: name, shape, SHA-256 of its initial float32 bytes. Then, in float64 and on a
batch given by a formula, the logits, the norm of each parameter's gradient and, after that one forward pass,
the sum of each buffer.
"""

import hashlib
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for stage in (1, 2, 3, 4):
            outputs, stride = width << (stage - 1), 1 if stage == 1 else 2
            blocks = nn.Sequential(Block(inputs, outputs, stride), Block(outputs, outputs, 1))
            setattr(self, f"layer{stage}", blocks)
            inputs = outputs
        self.linear = nn.Linear(8 * width, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.linear(nn.functional.avg_pool2d(x, 4).flatten(1))


def main():
    seed, width = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = ResNet18(width)
    for name, p in model.named_parameters():
        print(
            name,
            "x".join(map(str, p.shape)),
            hashlib.sha256(p.detach().numpy().tobytes()).hexdigest(),
        )
    model.double()
    images = torch.sin(torch.arange(4 * 3072, dtype=torch.float64)).reshape(4, 3, 32, 32)
    logits = model(images)
    nn.functional.cross_entropy(logits, torch.tensor([3, 1, 4, 1])).backward()
    print(*(repr(v) for v in logits.flatten().tolist()))
    print(*(repr(p.grad.norm().item()) for p in model.parameters()))
    print(*(repr(b.sum().item()) for b in model.buffers() if b.is_floating_point()))


if __name__ == "__main__":
    main()
