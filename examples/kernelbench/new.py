"""The same written anew.   assay check new.py --kernelbench reference.py"""

import torch
from torch import nn


class ModelNew(nn.Module):
    """One pass without the normalised logits: exponentials of differences from the largest."""

    def __init__(self, features: int, classes: int):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = x @ self.linear.weight.t() + self.linear.bias
        e = (logits - logits.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)
