"""The autograd of an operator: its backward is the operator made of the gradient Op."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import NotSupported
from ..gradient import differentiable
from ..op import Op


def register_gradient(
    library: torch.library.Library, name: str, op: Op, gradient: Any, outputs: int
) -> None:
    """Registers a backward for an operator, or one that refuses by name if there is no gradient.

    Without any, autograd would give no gradient and only warn.
    """

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.wanted = op.input_names(len(inputs))
        if gradient is None:
            return
        made = list(output) if outputs > 1 else [output]
        ctx.floating = differentiable(made)
        saved = gradient.op.of.saved(list(inputs), made)
        ctx.plain = [None if isinstance(s, torch.Tensor) else s for s in saved]
        ctx.tensors = [i for i, s in enumerate(saved) if isinstance(s, torch.Tensor)]
        ctx.save_for_backward(*(saved[i] for i in ctx.tensors))

    def backward(ctx: Any, *grads: Any) -> Any:
        names, needed = ctx.wanted, ctx.needs_input_grad
        wrt = gradient.op.of.wrt if gradient is not None else ()
        for name, wants in zip(names, needed):
            if wants and name not in wrt:
                has = f"only of {', '.join(wrt)}" if wrt else "none at all"
                raise NotSupported(
                    f"{op.name}: a gradient of {name} is asked for, and it declares {has}; "
                    f"declare one with {op.name}.gradient(..., wrt=...), or detach {name}"
                )
        values = list(ctx.plain)
        for place, tensor in zip(ctx.tensors, ctx.saved_tensors):
            values[place] = tensor
        made = gradient.overload(*(grads[i] for i in ctx.floating), *values)
        found = dict(zip(wrt, made if len(wrt) > 1 else [made]))
        return tuple(found[n] if wants else None for n, wants in zip(names, needed))

    torch.library.register_autograd(name, backward, setup_context=setup, lib=library)
