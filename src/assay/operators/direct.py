"""A call of an operator without the dispatcher, where the dispatcher would have nothing to do.

An ordinary call (ordinary.py) runs its plan at once: no schema, no keys, no second Python function.
Where a gradient is wanted, it is a `torch.autograd.Function` with the same rules as the registered
operator (autograd.py). Launches that are replayed (replay.py) need no Python at all where the C++
module of native/ is built. All else goes through the dispatcher.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from . import native
from .autograd import Rules
from .ordinary import tensor_is, thread_is
from .replay import Replay
from .running import MOST_KEPT, Runner

ELSEWHERE = object()
"""What `Direct` answers for a call that has to go through the dispatcher."""
SCALARS: dict[str, type] = {"bool": bool, "SymInt": int, "float": float, "str": str}
"""The types of values that a schema takes as they are; it would turn 1 into 1.0 for a float."""


class Direct:
    """What to ask first: `direct(args)` is what the operator returns, or ELSEWHERE.

    kinds: of the inputs, as a schema writes them. A call raises what planning it raises.
    """

    def __init__(self, runner: Runner, kinds: list[str], rules: Rules):
        self._runner, self._kinds, self._rules = runner, kinds, rules
        self.python = _function(runner, kinds, rules)
        """The same by Python alone."""
        self.call = self.python
        """The one that is used now, without the cost of `__call__`."""
        self._table: Any = None
        self._lock = threading.Lock()
        runner.noticed = self._noticed
        native.known(self)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        return self.call(args)

    def renew(self) -> None:
        """Forgets what was planned, so that the native module is looked for again."""
        with self._lock:
            self.call, self._table = self.python, None
        self._runner.forget()

    def path(self, args: tuple[Any, ...]) -> str:
        """How a call with these goes: `native`, or what else and why."""
        types = [SCALARS.get(kind) for kind in self._kinds]
        if len(args) != len(types) or not thread_is():
            return "through the dispatcher: something is switched on in this thread"
        if not all(tensor_is(x) if t is None else type(x) is t for x, t in zip(args, types)):
            return "through the dispatcher: not all of its inputs are plain tensors and numbers"
        wants = torch.is_grad_enabled() and any(
            isinstance(x, torch.Tensor) and x.requires_grad for x in args
        )
        if wants and self._rules.gradient is None:
            return "through the dispatcher: a gradient is wanted, and it has none"
        way = self._table.way(args) if self._table is not None else ""
        if way == "native":
            return way
        if way == "device":
            return "by Python: the GPU of its inputs is not the current one"
        if why := self._runner.anew(list(args)):
            return f"by Python, each launch anew: {why}"
        return f"by Python, replayed: {self._unserved()}"

    def _unserved(self) -> str:
        other = next((kind for kind in self._kinds if kind not in native.KINDS), "")
        if other:
            return f"native calls take no {other}"
        return native.reason() or "this form has more than a native call has room for"

    def _noticed(self, inputs: list[Any], replay: Replay) -> None:
        """Hands a plan to the native module, if there is one."""
        if any(kind not in native.KINDS for kind in self._kinds):
            return
        module = native.module()
        if module is None:
            return
        from .native import table

        with self._lock:
            if self._table is None:
                try:
                    self._table = table.table(
                        module, self._kinds, self._rules, self.python, ELSEWHERE, MOST_KEPT
                    )
                except (OSError, AttributeError) as error:
                    native.refuse(f"what it calls is not here: {error}")
                    return
            if table.added(self._table, self._rules, inputs, replay):
                self.call = self._table.call


def _function(runner: Runner, kinds: list[str], rules: Rules) -> Callable[[tuple[Any, ...]], Any]:
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
