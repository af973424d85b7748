"""Neurons, layers and losses: of scalars, and of tensors with the same weights."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from .scalar import Value
from .tensor import Tensor, apply

ACTIVATIONS = ("tanh", "relu", "sigmoid", "")
"""Of a layer; none for the last."""


@dataclass(frozen=True)
class Neuron:
    """activation(w . x + b)."""

    weights: tuple[Value, ...]
    bias: Value
    activation: str

    def __call__(self, x: Sequence[Value]) -> Value:
        total = self.bias
        for weight, one in zip(self.weights, x, strict=True):
            total = total + weight * one
        return getattr(total, self.activation)() if self.activation else total


@dataclass(frozen=True)
class Layer:
    """Several neurons on the same inputs."""

    neurons: tuple[Neuron, ...]

    def __call__(self, x: Sequence[Value]) -> list[Value]:
        return [neuron(x) for neuron in self.neurons]


@dataclass(frozen=True)
class MLP:
    """Layers one after the other."""

    layers: tuple[Layer, ...]

    def __call__(self, x: Sequence[Value]) -> list[Value]:
        found = list(x)
        for layer in self.layers:
            found = layer(found)
        return found

    def parameters(self) -> list[Value]:
        every = [neuron for layer in self.layers for neuron in layer.neurons]
        return [value for neuron in every for value in (*neuron.weights, neuron.bias)]


def mlp(sizes: Sequence[int], activation: str = "tanh", seed: int = 0) -> MLP:
    """A network of scalars with normal weights over sqrt(inputs); its last layer is linear."""
    draw = random.Random(seed)
    layers = []
    for place, (before, after) in enumerate(itertools.pairwise(sizes)):
        kind = activation if place < len(sizes) - 2 else ""
        weights = [[draw.gauss(0, before**-0.5) for _ in range(before)] for _ in range(after)]
        made = [Neuron(tuple(map(Value, row)), Value(0.0), kind) for row in weights]
        layers.append(Layer(tuple(made)))
    return MLP(tuple(layers))


@dataclass(frozen=True)
class TensorMLP:
    """The same over tensors: weights (outputs, inputs), biases (outputs,)."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    activations: tuple[str, ...]

    def __call__(self, x: Tensor) -> Tensor:
        """(rows, inputs) to (rows, outputs)."""
        for w, b, activation in zip(self.weights, self.biases, self.activations):
            x = x @ w.T
            x = x + b.expand(*x.data.shape)
            x = getattr(x, activation)() if activation else x
        return x

    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]


def as_tensors(network: MLP, dtype: torch.dtype, device: str = "cpu") -> TensorMLP:
    """A network of tensors with the weights of one of scalars."""
    weights, biases, activations = [], [], []
    for layer in network.layers:
        rows = [[w.data for w in neuron.weights] for neuron in layer.neurons]
        weights.append(Tensor(torch.tensor(rows, dtype=dtype, device=device)))
        given = [neuron.bias.data for neuron in layer.neurons]
        biases.append(Tensor(torch.tensor(given, dtype=dtype, device=device)))
        activations.append(layer.neurons[0].activation)
    return TensorMLP(tuple(weights), tuple(biases), tuple(activations))


def mean_squared_error(made: Sequence[Value], wanted: Sequence[float]) -> Value:
    """The mean of (made - wanted)^2."""
    parts = [(one - other) ** 2.0 for one, other in zip(made, wanted, strict=True)]
    return _total(parts) * (1 / len(parts))


def cross_entropy(scores: Sequence[Value], target: int) -> Value:
    """log sum exp(scores) - scores[target], with the largest score taken off first."""
    largest = max(score.data for score in scores)
    total = _total([(score - largest).exp() for score in scores])
    return total.log() + largest - scores[target]


def tensor_mean_squared_error(made: Tensor, wanted: torch.Tensor) -> Tensor:
    """The same of tensors of one shape."""
    apart = made + Tensor(-wanted)
    return (apart * apart).sum().scaled(1 / made.data.numel())


def tensor_cross_entropy(scores: Tensor, target: torch.Tensor) -> Tensor:
    """The mean over rows of scores (rows, classes) for targets (rows,), by one fused operator."""
    return apply("cross_entropy", scores, target).sum().scaled(1 / len(target))


def step(parameters: Iterable[Value | Tensor], rate: float) -> None:
    """Goes down the gradient, and forgets it: else the next backward would add to it."""
    for one in parameters:
        if isinstance(one, Tensor):
            if one.grad is not None:
                one.data = one.data - rate * one.grad
                one.grad = None
        else:
            one.data -= rate * one.grad
            one.grad = 0.0


def _total(parts: Sequence[Value]) -> Value:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
