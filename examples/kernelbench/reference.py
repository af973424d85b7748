"""What it computes, as KernelBench states it: a Model, its inputs, and what it is built from."""

import torch
from torch import nn


class Model(nn.Module):
    """A linear layer, then a softmax over its features."""

    def __init__(self, features: int, classes: int):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(x), -1)


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [64, 10]
