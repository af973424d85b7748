"""Backpropagation over single numbers: each result remembers what it was made of, and the slopes.

    w, x = Value(3.0), Value(2.0)
    loss = (w * x).tanh()
    loss.backward()          # w.grad is x.data * (1 - loss.data^2)

A node that is used twice gets both parts of its gradient: they are added, never set. The rules are
those of calculus; x ** k is for a number k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .order import backwards


class Value:
    """A number on the tape, and the gradient of the last `backward` calls with respect to it."""

    __slots__ = ("data", "grad", "made_by", "parents", "slopes")

    def __init__(
        self,
        data: float,
        parents: Sequence[Value] = (),
        slopes: Sequence[float] = (),
        made_by: str = "",
    ):
        self.data, self.grad = float(data), 0.0
        self.parents, self.slopes, self.made_by = tuple(parents), tuple(slopes), made_by

    def backward(self) -> None:
        """Adds d self / d node to the gradient of every node that self was made of."""
        order = backwards(self)
        whole = {id(node): 0.0 for node in order}
        whole[id(self)] = 1.0
        for node in order:
            for parent, slope in zip(node.parents, node.slopes):
                whole[id(parent)] += slope * whole[id(node)]
        for node in order:
            node.grad += whole[id(node)]

    def __add__(self, other: Value | float) -> Value:
        b = _value(other)
        return Value(self.data + b.data, (self, b), (1.0, 1.0), "+")

    def __mul__(self, other: Value | float) -> Value:
        b = _value(other)
        return Value(self.data * b.data, (self, b), (b.data, self.data), "*")

    def __pow__(self, power: float) -> Value:
        slope = power * self.data ** (power - 1) if power else 0.0
        return Value(self.data**power, (self,), (slope,), f"**{power:g}")

    def exp(self) -> Value:
        y = math.exp(self.data)
        return Value(y, (self,), (y,), "exp")

    def log(self) -> Value:
        return Value(math.log(self.data), (self,), (1 / self.data,), "log")

    def relu(self) -> Value:
        return Value(max(0.0, self.data), (self,), (float(self.data > 0),), "relu")

    def tanh(self) -> Value:
        y = math.tanh(self.data)
        return Value(y, (self,), (1 - y * y,), "tanh")

    def sigmoid(self) -> Value:
        e = math.exp(-abs(self.data))  # never overflows
        y = 1 / (1 + e) if self.data >= 0 else e / (1 + e)
        return Value(y, (self,), (y * (1 - y),), "sigmoid")

    def __neg__(self) -> Value:
        return self * -1.0

    def __sub__(self, other: Value | float) -> Value:
        return self + -_value(other)

    def __truediv__(self, other: Value | float) -> Value:
        return self * _value(other) ** -1.0

    def __radd__(self, other: float) -> Value:
        return self + other

    def __rmul__(self, other: float) -> Value:
        return self * other

    def __rsub__(self, other: float) -> Value:
        return _value(other) - self

    def __rtruediv__(self, other: float) -> Value:
        return _value(other) / self

    def __repr__(self) -> str:
        return f"Value({self.data:.6g}, grad={self.grad:.6g})"


def _value(x: Value | float) -> Value:
    return x if isinstance(x, Value) else Value(x)
