"""Backpropagation over tensors, with the library's operators forward and their gradients backward.

Every step is an operator of `assay.ops` and its declared gradient: on a GPU those are our kernels,
but for gradients that only copy, scale or add up (of `vecadd`, `scale_bias`, `sum`, `transpose`,
`expand`). torch holds the memory, adds gradients up, and lends no autograd. Shapes must match as in
the operator; `expand` repeats along leading dimensions or ones, and its gradient is the sum over
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..errors import NotSupported, OpError
from ..ops import served
from .order import backwards

Back = Callable[[torch.Tensor], Sequence[torch.Tensor]]


class Tensor:
    """A tensor on the tape. `grad` is None before the first `backward`, then of data's shape."""

    __slots__ = ("back", "data", "grad", "made_by", "parents")

    def __init__(
        self,
        data: torch.Tensor,
        parents: Sequence[Tensor] = (),
        back: Back | None = None,
        made_by: str = "",
    ):
        self.data = data.detach()
        self.grad: torch.Tensor | None = None
        self.parents, self.back, self.made_by = tuple(parents), back, made_by

    def backward(self) -> None:
        """Adds d self / d node to the gradient of every node. Raises OpError for a non-scalar."""
        if self.data.numel() != 1:
            raise OpError(
                f"backward of a tensor of shape {tuple(self.data.shape)}: a gradient is one of a "
                "number; take a sum or a mean first"
            )
        order = backwards(self)
        whole = {id(self): torch.ones_like(self.data)}
        for node in order:
            above = whole[id(node)]
            for parent, part in zip(node.parents, node.back(above) if node.back else ()):
                known = whole.get(id(parent))
                whole[id(parent)] = part if known is None else _added(known, part)
        for node in order:
            new = whole[id(node)]
            node.grad = new if node.grad is None else _added(node.grad, new)

    def __add__(self, other: Tensor) -> Tensor:
        return apply("vecadd", self, other)

    def __mul__(self, other: Tensor) -> Tensor:
        return apply("scale_bias", self, other, torch.zeros_like(self.data))

    def __matmul__(self, other: Tensor) -> Tensor:
        """(m, k) @ (k, n), by the batched product of one."""
        return apply("bmm", self.view(1, *self.data.shape), other.view(1, *other.data.shape)).view(
            self.data.shape[0], other.data.shape[1]
        )

    @property
    def T(self) -> Tensor:
        return apply("transpose", self)

    def sum(self) -> Tensor:
        return apply("sum", self.view(-1))

    def row_sum(self) -> Tensor:
        return apply("row_sum", self)

    def relu(self) -> Tensor:
        return apply("relu", self)

    def tanh(self) -> Tensor:
        return apply("tanh", self)

    def sigmoid(self) -> Tensor:
        return apply("sigmoid", self)

    def gelu(self) -> Tensor:
        return apply("gelu", self)

    def softmax(self) -> Tensor:
        return apply("softmax", self)

    def view(self, *shape: int) -> Tensor:
        """The same elements in another shape."""
        old = self.data.shape
        made = self.data.reshape(*shape)
        return Tensor(made, (self,), lambda above: (above.reshape(old),), "view")

    def expand(self, *shape: int) -> Tensor:
        """Repeated along new leading dimensions and those of one element."""
        old = self.data.shape
        made = self.data.expand(*shape).contiguous()
        return Tensor(made, (self,), lambda above: (above.sum_to_size(old),), "expand")

    def scaled(self, factor: float) -> Tensor:
        """Times a number."""
        return Tensor(self.data * factor, (self,), lambda above: (above * factor,), "scaled")


def apply(name: str, *inputs: Tensor | torch.Tensor) -> Tensor:
    """A library operator of these inputs; gradients go to those that are on the tape.

    Raises NotSupported where the operator has no gradient, for one of them or at all.
    """
    operator = served(name)
    data = [x.data if isinstance(x, Tensor) else x for x in inputs]
    made = operator(*data)
    if operator.gradient is None:
        raise NotSupported(f"{name}: it declares no gradient, so the tape ends at it")
    of = operator.gradient.op.of
    names = operator.op.input_names(len(inputs))
    on_tape = [(n, x) for n, x in zip(names, inputs) if isinstance(x, Tensor)]
    missing = [n for n, _ in on_tape if n not in of.wrt]
    if missing:
        raise NotSupported(f"{name}: it declares no gradient of {', '.join(missing)}")

    def back(above: torch.Tensor) -> list[torch.Tensor]:
        found = operator.gradient(above.contiguous(), *of.saved(data, [made]))
        parts = dict(zip(of.wrt, found if len(of.wrt) > 1 else [found]))
        return [parts[n] for n, _ in on_tape]

    return Tensor(made, [x for _, x in on_tape], back, name)


def _added(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    made = served("vecadd")(one.reshape(-1).contiguous(), other.reshape(-1).contiguous())
    return made.reshape(one.shape) if isinstance(made, torch.Tensor) else made


def told(root: Any) -> Iterator[str]:
    """The tape of a result, a line a node: what made it, its size, and its gradient's size.

    A weight moves by its gradient, and that is the input times what comes from above: large where
    both are.
    """
    for node in backwards(root):
        data, grad = _size(node.data), _size(node.grad)
        yield f"{node.made_by or 'leaf':<14} {data:>10}  gradient {grad:>10}"


def _size(x: torch.Tensor | float | None) -> str:
    """Root mean square of a tensor, or the number itself."""
    if x is None:
        return "none yet"
    if isinstance(x, torch.Tensor):
        return f"{float(x.double().pow(2).mean().sqrt()):.3g}"
    return f"{x:.3g}"
