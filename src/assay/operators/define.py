"""`assay.torch_op`: an Op and its gradient as a torch operator, registered with torch.library.

Defined with `torch.library.Library.define`, whose calls take the host less time than those of
`custom_op`, which wraps every one of them. What is registered: a schema, one implementation
for all devices, a fake made from the reference, autograd from the gradient Op, and autocast.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ..errors import NotSupported, OpError
from ..inputs import dtype_name, dtype_of
from ..op import Op
from .autograd import Rules, register_gradient
from .casting import RULES, register_autocast
from .direct import ELSEWHERE, Direct
from .dtypes import named
from .picking import TUNED
from .running import Runner, shapes

NAMESPACE = "assay"
_KEPT: list[torch.library.Library] = []
_taken: set[str] = set()
TYPES: dict[type, str] = {bool: "bool", int: "SymInt", float: "float", str: "str"}


@dataclass(frozen=True, eq=False)
class TorchOp:
    """A torch operator: call it as a function. `overload` is what torch knows it by.

    For an Op that mutates, the call changes its inputs and returns them first, then the other
    outputs; where gradients are wanted it runs `functional`, which changes nothing, and copies.
    """

    op: Op
    gradient: TorchOp | None
    overload: Any
    functional: Any
    """Returns what changed inputs become; the same as `overload` where there are none."""
    mutated: tuple[int, ...]
    double: bool
    """Whether its gradient has a gradient."""
    runner: Runner
    direct: Direct
    """What is asked first: the outputs, or ELSEWHERE where the dispatcher has to be."""

    @property
    def name(self) -> str:
        """`assay::softmax`."""
        return str(self.overload.name())

    def serves(self, *args: Any) -> str:
        """`cuda/online BLOCK=256, tuned on rows=64 n=1025`: which variant runs for these inputs,
        and why. Raises NotSupported as a call does."""
        return self.runner.why(list(args))

    def path(self, *args: Any) -> str:
        """How a call with these inputs goes: `native`, or by Python or the dispatcher, and why."""
        if self.mutated:
            return "through the dispatcher: it changes its inputs"
        return self.direct.path(args)

    def __call__(self, *args: Any) -> Any:
        if not self.mutated:
            # To torch.compile the question is a constant, and the operator one node of the graph.
            if not is_dynamo_compiling():
                made = self.direct.call(args)
                if made is not ELSEWHERE:
                    return made
            return self.overload(*args)
        changed = [args[place] for place in self.mutated]
        needed = torch.is_grad_enabled() and any(
            x.requires_grad for x in args if isinstance(x, torch.Tensor)
        )
        if needed:
            made = _listed(self.functional(*args))
            for x, new in zip(changed, made):
                x.copy_(new)
            outputs = [*changed, *made[len(changed) :]]
        else:
            outputs = [*changed, *_listed(self.overload(*args))]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def torch_op(
    op: Op,
    forward: str = "eager",
    backward: str = "",
    *,
    cpu: str = "",
    gradient: Op | None = None,
    autocast: str = "widest",
    dtypes: Iterable[str] = (),
    name: str = "",
) -> TorchOp:
    """A torch operator that runs one variant of an Op, with autograd from the Op's gradient.

    forward, backward: variants, `triton` or `cuda/online BLOCK=256` (without knobs: their first
        values), or `tuned`: what `assay tune` found fastest on this card (see picking.py).
        backward: of the gradient Op; default the variant of the same name.
    cpu: the variant for tensors on the CPU, if forward does not run there; say "eager". Without
        it, such tensors are refused with NotSupported.
    gradient: which of the Op's gradients, if it has several.
    autocast: under torch.autocast, floating-point inputs become the "widest" dtype among them,
        "float32", or autocast's "lower" one.
    dtypes: further ones, beside those of the Op's cases, which a check has judged: each may stand
        for one of its kind.
    name: in torch's registry; default the Op's, with a number if that is taken.

    Inputs and gradients may have any strides: they are made contiguous for a variant that does not
    say layouts="any". Outputs are contiguous, and never share memory with an input.

    Raises OpError for what can't be made. A call raises NotSupported for a device or a dtype
    outside of what the operator was made for.
    """
    if autocast not in RULES:
        raise OpError(f"{op.name}: autocast={autocast!r}; say one of {', '.join(RULES)}")
    grad = _gradient_of(op, gradient)
    if backward and grad is None:
        raise OpError(
            f"{op.name}: backward={backward!r}, and it has no gradient; declare op.gradient(...)"
        )
    first = forward.split()[0]
    if grad is not None and not backward:
        if first != TUNED and all(v.name != first for v in grad.variants):
            there = ", ".join(v.name for v in grad.variants)
            raise OpError(
                f"{grad.name}: no variant is called {first!r} as the forward's; say backward= one "
                f"of {there}"
            )
        backward = first
    more = tuple(dtype_name(dtype_of(each)) for each in dtypes)
    # A gradient may be judged in fewer dtypes than its forward, whose x it gets all the same.
    made = _gradient_op(grad, backward, cpu, (*more, *named(op))) if grad is not None else None
    return _define(op, Runner(op, forward, cpu, more), made, autocast, name or op.name)


def _gradient_op(grad: Op, backward: str, cpu: str, dtypes: tuple[str, ...]) -> TorchOp:
    """The gradient as an operator of its own, so that torch.compile takes it as one step."""
    further = _gradient_of(grad, None)
    twice = None
    if further is not None:
        first = backward.split()[0]
        same = first == TUNED or any(v.name == first for v in further.variants)
        twice = _gradient_op(further, backward if same else "eager", cpu, dtypes)
    return _define(grad, Runner(grad, backward, cpu, dtypes), twice, "", grad.name)


def _gradient_of(op: Op, wanted: Op | None) -> Op | None:
    if wanted is not None:
        if wanted.of is None or wanted.of.forward is not op:
            raise OpError(f"{op.name}: gradient={wanted.name} is not one of its gradients")
        return wanted
    if len(op.gradients) > 1:
        names = ", ".join(g.name for g in op.gradients)
        raise OpError(f"{op.name}: it has several gradients ({names}); say gradient= which")
    return op.gradients[0] if op.gradients else None


def _define(op: Op, runner: Runner, grad: TorchOp | None, autocast: str, name: str) -> TorchOp:
    sample = runner.sample
    names = op.input_names(len(sample))
    mutated = [names.index(n) for n in op.mutates]
    count = len(shapes(op, list(sample)))
    kinds = [_kind(op, n, x) for n, x in zip(names, sample)]
    own = _free(name)
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _KEPT.append(library)
    takes = ", ".join(f"{kind} {n}" for kind, n in zip(kinds, names))
    functional = _register(library, own, f"({takes}) -> {_returns(count)}")
    library.impl(own, lambda *args: _plain(runner.run(_copied(args, mutated), mutated), op), KEY)
    torch.library.register_fake(
        f"{NAMESPACE}::{own}", lambda *args: _plain(shapes(op, list(args)), op), lib=library
    )
    rules = Rules(op, grad)
    register_gradient(library, f"{NAMESPACE}::{own}", rules)
    overload = functional
    if mutated:
        overload = _in_place(library, own, op, runner, names, kinds, mutated, count)
    if autocast:
        for each in {own, overload.name().partition("::")[2]}:
            register_autocast(library, each, getattr(torch.ops.assay, each).default, autocast)
    double = grad is not None and grad.gradient is not None
    first = Direct(runner, kinds, rules)
    return TorchOp(op, grad, overload, functional, tuple(mutated), double, runner, first)


KEY = "CompositeExplicitAutograd"
"""One implementation for every device: it looks at its tensors itself."""


def _register(library: torch.library.Library, name: str, schema: str) -> Any:
    library.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def _in_place(
    library: torch.library.Library,
    own: str,
    op: Op,
    runner: Runner,
    names: list[str],
    kinds: list[str],
    mutated: list[int],
    count: int,
) -> Any:
    """`name_`, whose schema says which inputs it changes; it returns the other outputs."""
    name, rest = _free(f"{own}_"), count - len(mutated)
    marked = [
        f"Tensor(a{i}!) {n}" if i in mutated else f"{kind} {n}"
        for i, (kind, n) in enumerate(zip(kinds, names))
    ]
    overload = _register(library, name, f"({', '.join(marked)}) -> {_returns(rest)}")

    def run(*args: Any) -> Any:
        made = runner.run(list(args), mutated)[len(mutated) :]
        return _plain(made, op) if made else None

    def fake(*args: Any) -> Any:
        made = shapes(op, list(args))[len(mutated) :]
        return _plain(made, op) if made else None

    library.impl(name, run, KEY)
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
    return overload


def _returns(count: int) -> str:
    return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _kind(op: Op, name: str, value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "Tensor"
    if value is None:
        return "Tensor?"
    if type(value) in TYPES:
        return TYPES[type(value)]
    said = dtype_name(value) if isinstance(value, torch.dtype) else repr(value)
    raise OpError(
        f"{op.name}: input {name} is {said}, which no schema of an operator has; torch_op takes "
        "tensors, bools, ints, floats and strings"
    )


def _free(name: str) -> str:
    """The name, or with the first number that is not taken."""
    wanted = (name if i == 1 else f"{name}_{i}" for i in itertools.count(1))
    found = next(n for n in wanted if n not in _taken)
    _taken.add(found)
    return found


def _copied(args: tuple[Any, ...], mutated: list[int]) -> list[Any]:
    return [x.clone() if i in mutated else x for i, x in enumerate(args)]


def _plain(made: list[torch.Tensor], op: Op) -> Any:
    if not made:
        raise NotSupported(f"{op.name}: it has no outputs")
    return made[0] if len(made) == 1 else tuple(made)


def _listed(made: Any) -> list[torch.Tensor]:
    if made is None:
        return []
    return list(made) if isinstance(made, (tuple, list)) else [made]
