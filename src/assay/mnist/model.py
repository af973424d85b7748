"""The network of the notes: its sizes, its layers in order, and weights that all start from.

    block 1   conv2d 3x3 -> batchnorm2d -> relu -> maxpool2d      1 x 28 x 28 -> 16 x 14 x 14
    block 2   the same                                           -> 32 x 7 x 7
    head      flatten -> linear -> relu -> linear                -> 128 -> 10
    loss      log-softmax and cross-entropy in one; SGD without momentum or schedule

Batchnorm knows the statistics of its batch alone, in training and in evaluation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..errors import AssayError
from ..inputs import Make
from ..op import Op
from .layers.batchnorm2d import batchnorm2d, batchnorm2d_grad
from .layers.conv2d import conv2d, conv2d_grad
from .layers.cross_entropy import cross_entropy, cross_entropy_grad
from .layers.linear import linear, linear_grad
from .layers.maxpool2d import maxpool2d, maxpool2d_grad
from .layers.relu import relu, relu_grad

Parameters = dict[str, torch.Tensor]
"""Names such as `conv1.weight`, as PyTorch has them, to tensors."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the network: channels of two blocks, hidden features, classes, an image's side."""

    first: int = 16
    second: int = 32
    hidden: int = 128
    classes: int = 10
    side: int = 28

    def __post_init__(self) -> None:
        if self.side % 4 or min(self.first, self.second, self.hidden, self.classes, self.side) < 1:
            raise AssayError(
                f"{self}: sizes are at least 1, and the side, halved twice, is a multiple of 4"
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter, in the order of the layers."""
        flat = self.second * (self.side // 4) ** 2
        return {
            "conv1.weight": (self.first, 1, 3, 3),
            "conv1.bias": (self.first,),
            "bn1.weight": (self.first,),
            "bn1.bias": (self.first,),
            "conv2.weight": (self.second, self.first, 3, 3),
            "conv2.bias": (self.second,),
            "bn2.weight": (self.second,),
            "bn2.bias": (self.second,),
            "fc1.weight": (self.hidden, flat),
            "fc1.bias": (self.hidden,),
            "fc2.weight": (self.classes, self.hidden),
            "fc2.bias": (self.classes,),
        }


@dataclass(frozen=True)
class Layer:
    """One layer: its Op, that of its gradient, and whether its parameters are `name.weight`, ..."""

    name: str
    op: Op
    gradient: Op
    weighted: bool = False
    flattens: bool = False
    """Whether it takes each image as one row."""

    @property
    def parameters(self) -> tuple[str, ...]:
        return (f"{self.name}.weight", f"{self.name}.bias") if self.weighted else ()


LAYERS = (
    Layer("conv1", conv2d, conv2d_grad, weighted=True),
    Layer("bn1", batchnorm2d, batchnorm2d_grad, weighted=True),
    Layer("relu1", relu, relu_grad),
    Layer("pool1", maxpool2d, maxpool2d_grad),
    Layer("conv2", conv2d, conv2d_grad, weighted=True),
    Layer("bn2", batchnorm2d, batchnorm2d_grad, weighted=True),
    Layer("relu2", relu, relu_grad),
    Layer("pool2", maxpool2d, maxpool2d_grad),
    Layer("fc1", linear, linear_grad, weighted=True, flattens=True),
    Layer("relu3", relu, relu_grad),
    Layer("fc2", linear, linear_grad, weighted=True),
)
LOSS = Layer("loss", cross_entropy, cross_entropy_grad)


def initial(sizes: Sizes, seed: int, dtype: str = "float32") -> Parameters:
    """Weights to start from, the same bits for every back end, machine and process.

    Uniform within 1 / sqrt(inputs of a unit), as torch.nn's layers have it; batchnorm starts as the
    identity. Drawn in float32, then converted.
    """
    make, shapes, made = Make(seed), sizes.shapes(), {}
    for name, shape in shapes.items():
        layer, _, part = name.partition(".")
        if layer.startswith("bn"):
            made[name] = make.full(shape, value=float(part == "weight"))
        else:
            inputs = torch.Size(shapes[f"{layer}.weight"][1:]).numel()
            made[name] = make.uniform(shape, low=-(inputs**-0.5), high=inputs**-0.5)
    return {name: value.to(getattr(torch, dtype)) for name, value in made.items()}


def check(sizes: Sizes, parameters: Mapping[str, torch.Tensor], where: str) -> None:
    """Raises AssayError unless these are the parameters of a network of these sizes."""
    wanted = sizes.shapes()
    for name, shape in wanted.items():
        found = parameters.get(name)
        if found is None:
            raise AssayError(f"{where}: no parameter {name}; there are {', '.join(parameters)}")
        if tuple(found.shape) != shape:
            raise AssayError(f"{where}: {name} is {tuple(found.shape)}; {sizes} has {shape}")
    other = sorted(set(parameters) - set(wanted))
    if other:
        raise AssayError(f"{where}: {other[0]} is no parameter; there are {', '.join(wanted)}")


def digest(parameters: Mapping[str, torch.Tensor]) -> str:
    """12 hex digits of the parameters' bits: equal where every bit is."""
    found = hashlib.sha256()
    for name in sorted(parameters):
        value = parameters[name].detach().cpu().contiguous()
        found.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        found.update(value.numpy().tobytes())
    return found.hexdigest()[:12]
