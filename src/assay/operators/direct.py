"""A call of an operator without the dispatcher, where the dispatcher would have nothing to do.

An ordinary call (ordinary.py) runs its plan at once: no schema, no keys, no second Python function.
Where a gradient is wanted, it is a `torch.autograd.Function` with the same rules as the registered
operator (autograd.py). All else goes through the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .autograd import Rules
from .ordinary import tensor_is, thread_is
from .running import Runner

ELSEWHERE = object()
"""What `Direct` answers for a call that has to go through the dispatcher."""
SCALARS: dict[str, type] = {"bool": bool, "SymInt": int, "float": float, "str": str}
"""The types of values that a schema takes as they are; it would turn 1 into 1.0 for a float."""


def direct(runner: Runner, kinds: list[str], rules: Rules) -> Callable[[tuple[Any, ...]], Any]:
    """The function to ask first: its answer is what the operator returns, or ELSEWHERE.

    kinds: of the inputs, as a schema writes them. Raises what planning a call raises.
    """
    tensors = [kind == "Tensor" for kind in kinds]
    if not all(is_tensor or kind in SCALARS for is_tensor, kind in zip(tensors, kinds)):
        return lambda args: ELSEWHERE
    types = [SCALARS.get(kind, torch.Tensor) for kind in kinds]
    places = [i for i, is_tensor in enumerate(tensors) if is_tensor]
    others = [(i, types[i]) for i, is_tensor in enumerate(tensors) if not is_tensor]
    count, run = len(kinds), runner.planned_run

    def forward(ctx: Any, *args: Any) -> Any:
        made = _returned(run(args))
        rules.setup(ctx, args, made)
        return made

    function: Any = type(
        runner.op.name,
        (torch.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(rules.backward)},
    )
    # Function.apply looks for transforms of torch.func, of which an ordinary call has none.
    apply = super(torch.autograd.Function, function).apply
    has_gradient = rules.gradient is not None

    def call(args: tuple[Any, ...]) -> Any:
        if len(args) != count or not thread_is():
            return ELSEWHERE
        wants = False
        for i in places:
            x = args[i]
            if not tensor_is(x):
                return ELSEWHERE
            wants = wants or x.requires_grad
        for i, kind in others:
            if type(args[i]) is not kind:
                return ELSEWHERE
        if wants and torch.is_grad_enabled():
            return apply(*args) if has_gradient else ELSEWHERE
        return _returned(run(args))

    return call


def _returned(made: list[torch.Tensor]) -> Any:
    return made[0] if len(made) == 1 else tuple(made)
