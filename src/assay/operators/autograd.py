"""The autograd of an operator: its backward is the operator made of the gradient Op."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import NotSupported
from ..gradient import differentiable
from ..op import Op


class Rules:
    """What is kept of a forward, and what a backward makes of it.

    Without a gradient, the backward refuses by name: without any, autograd would give no gradient
    and only warn.
    """

    def __init__(self, op: Op, gradient: Any):
        self.op, self.gradient = op, gradient
        self._names: list[str] = []
        self._places: list[tuple[bool, int]] = []

    def setup(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps what the gradient saves."""
        made = list(output) if isinstance(output, (tuple, list)) else [output]
        places = self.places(len(inputs), len(made))
        if self.gradient is None:
            return
        saved = [(made if is_output else inputs)[i] for is_output, i in places]
        ctx.floating = differentiable(made)
        ctx.plain = [None if isinstance(s, torch.Tensor) else s for s in saved]
        ctx.save_for_backward(*(s for s in saved if isinstance(s, torch.Tensor)))

    def places(self, inputs: int, outputs: int) -> list[tuple[bool, int]]:
        """Of what the gradient saves, for so many inputs and outputs: whether it is an output, and
        which."""
        if len(self._names) < inputs:  # reading a signature takes longer than a small kernel
            self._names = self.op.input_names(inputs)
        if self.gradient is not None and not self._places:
            self._places = self.gradient.op.of.places(inputs, outputs)
        return self._places

    def backward(self, ctx: Any, *grads: Any) -> Any:
        """The gradients of the inputs that need one, None for others. Raises NotSupported."""
        gradient, names, needed = self.gradient, self._names, ctx.needs_input_grad
        wrt = gradient.op.of.wrt if gradient is not None else ()
        for name, wants in zip(names, needed):
            if wants and name not in wrt:
                has = f"only of {', '.join(wrt)}" if wrt else "none at all"
                raise NotSupported(
                    f"{self.op.name}: a gradient of {name} is asked for, and it declares {has}; "
                    f"declare one with {self.op.name}.gradient(..., wrt=...), or detach {name}"
                )
        kept = iter(ctx.saved_tensors)
        values = [next(kept) if value is None else value for value in ctx.plain]
        made = gradient(*(grads[i] for i in ctx.floating), *values)
        found = dict(zip(wrt, made if len(wrt) > 1 else [made]))
        return tuple(found[n] if wants else None for n, wants in zip(names, needed))


def register_gradient(library: torch.library.Library, name: str, rules: Rules) -> None:
    """Registers these rules for an operator."""

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        rules.setup(ctx, inputs, output)

    torch.library.register_autograd(
        name, lambda ctx, *grads: rules.backward(ctx, *grads), setup_context=setup, lib=library
    )
