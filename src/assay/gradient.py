"""A gradient is another Op: its inputs are output gradients and saved values as rounded.

Judging a bfloat16 backward that reads saved outputs against autograd from x would condemn perfect
arithmetic: what it was given is rounded already. So its truth is the formula over what is given,
and verdict/joined.py checks that the formula is the gradient, on values that are not rounded.

Nothing here imports torch before a case is made.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import OpError
from .op import Op, make_inputs, parameters
from .types import Case

if TYPE_CHECKING:
    import torch

VALUE_KINDS = ("nan", "inf", "masked", "zeros", "equal", "wide", "huge", "tiny", "denormal")
"""Hostile values. Done to one saved value, they would contradict the others."""
LAYOUT_VALUES = ("expanded", "broadcast")
"""Hostile layouts that change values too."""
MAY_DECLARE = ("flops", "bytes", "outputs", "deterministic", "supports", "accept", "limit")
NUMBERED = re.compile(r"output(\d+)")


@dataclass(frozen=True, eq=False)
class Gradient:
    """What joins a gradient to its forward Op."""

    forward: Op
    saves: tuple[str, ...]
    """Names of inputs of the forward; any other name is an output: see `output_index`."""
    wrt: tuple[str, ...]
    """Inputs of the forward that the outputs of the gradient belong to, in order."""
    grads: int
    """How many output gradients come first: one for each floating-point output."""

    def saved(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        """The values that it saves, of these inputs and outputs of the forward."""
        places = self.places(len(inputs), len(outputs))
        return [(outputs if is_output else inputs)[i] for is_output, i in places]

    def places(self, inputs: int, outputs: int) -> list[tuple[bool, int]]:
        """Of each value that it saves: whether it is an output, and which; of so many."""
        names = self.forward.input_names(inputs)
        return [
            (False, names.index(name)) if name in names else (True, self._output(name, outputs))
            for name in self.saves
        ]

    def _output(self, name: str, outputs: int) -> int:
        index = output_index(name)
        if index is None and outputs > 1:
            raise OpError(
                f"{self.forward.name}: its gradient saves {name!r}, and there are {outputs} "
                f"outputs; say which: output0 to output{outputs - 1}"
            )
        if (index or 0) >= outputs:
            raise OpError(
                f"{self.forward.name}: its gradient saves {name!r}, and there are {outputs} outputs"
            )
        return index or 0


def output_index(name: str) -> int | None:
    """1 of `output1`; None for any other name, which means the only output."""
    found = NUMBERED.fullmatch(name)
    return int(found[1]) if found else None


def gradient_of(
    forward: Op,
    reference: Callable[..., Any],
    saves: str | Iterable[str],
    wrt: str | Iterable[str],
    name: str,
    cases: Iterable[Any] | None,
    excludes: str | Iterable[str],
    **declared: Any,
) -> Op:
    """See `Op.gradient`."""
    what = name or f"{forward.name}_grad"
    saved = (saves,) if isinstance(saves, str) else tuple(saves)
    wanted = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    unknown = sorted(set(declared) - set(MAY_DECLARE))
    if unknown:
        raise OpError(
            f"{what}: gradient(...) declares {unknown[0]!r}; known are {', '.join(MAY_DECLARE)}"
        )
    takes = parameters(reference)
    _check(what, forward, takes, saved, wanted)
    join = Gradient(forward, saved, wanted, len(takes) - len(saved))

    @functools.wraps(forward.inputs)
    def inputs(make: Any, **case: Any) -> tuple[Any, ...]:
        return _inputs(what, join, make, case)

    return Op(
        what,
        reference,
        inputs,
        cases=list(cases) if cases is not None else _floating(forward),
        excludes=(
            *_excluded(join, takes),
            *((excludes,) if isinstance(excludes, str) else excludes),
        ),
        shapes={
            own: forward.shapes[name]
            for own, name in zip(takes[join.grads :], saved)
            if name in forward.shapes
        },
        of=join,
        **{"supports": forward.supports, **declared},
    )


def _check(
    what: str, forward: Op, takes: list[str], saves: tuple[str, ...], wrt: tuple[str, ...]
) -> None:
    given = parameters(forward.reference)
    if not wrt:
        raise OpError(f"{what}: wrt names no input; say which of {', '.join(given)} it is for")
    for name in wrt:
        if given and name not in given:
            raise OpError(f"{what}: wrt names {name!r}; {forward.name} takes {', '.join(given)}")
    for name in saves:
        if name in forward.mutates:
            index = forward.mutates.index(name)
            raise OpError(
                f"{what}: saves names {name!r}, which {forward.name} changes in place; save "
                f"'output{index}', what it holds afterwards"
            )
    if len(takes) <= len(saves):
        raise OpError(
            f"{what}: its reference takes ({', '.join(takes)}); it is given the output gradients, "
            f"then {', '.join(saves) or 'nothing saved'}"
        )


def _excluded(join: Gradient, takes: list[str]) -> list[str]:
    """Hostile values of one saved tensor, where it would no longer fit the others."""
    given = parameters(join.forward.reference)
    own = takes[join.grads :]
    kinds = [k for k in join.forward.excludes if ":" not in k]
    for mine, name in zip(own, join.saves):
        kinds += [
            f"{mine}:{kind.partition(':')[2]}"
            for kind in join.forward.excludes
            if kind.startswith(f"{name}:")
        ]
    if any(name not in given for name in join.saves):
        kinds += [f"{mine}:{kind}" for mine in own for kind in (*VALUE_KINDS, *LAYOUT_VALUES)]
    return list(dict.fromkeys(kinds))


def _floating(forward: Op) -> list[Case]:
    """The forward's cases without those in integers and booleans, which have no gradient."""
    whole = ("int", "uint", "bool")
    kept = [
        case for case in forward.cases if not str(case.values.get("dtype", "")).startswith(whole)
    ]
    if not kept:
        raise OpError(f"{forward.name}: none of its cases is in floating point, so no gradient")
    return kept


def _inputs(what: str, join: Gradient, make: Any, case: dict[str, Any]) -> tuple[Any, ...]:
    import torch

    given = make_inputs(join.forward, make, Case(case))
    outputs = [plain(y) for y in run_forward(join.forward, given)]
    floating = differentiable(outputs)
    if len(floating) != join.grads:
        raise OpError(
            f"{what}: its reference takes {join.grads} output gradients, and {join.forward.name} "
            f"has {len(floating)} floating-point outputs"
        )
    grads = [_normal(make, outputs[i], torch) for i in floating]
    return (*grads, *join.saved(given, outputs))


def _normal(make: Any, like: torch.Tensor, torch: Any) -> Any:
    if not like.is_complex():
        return make.normal(tuple(like.shape), dtype=like.dtype)
    half = like.real.dtype
    return torch.complex(*(make.normal(tuple(like.shape), dtype=half) for _ in range(2)))


def run_forward(forward: Op, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of the reference on copies of what it changes, in the inputs' own dtype."""
    import torch

    names = forward.input_names(len(inputs))
    with torch.no_grad():
        made = forward.reference(
            *(x.clone() if name in forward.mutates else x for x, name in zip(inputs, names))
        )
    return list(made) if isinstance(made, (tuple, list)) else [made]


def plain(value: Any) -> Any:
    """An output as an operator returns it: contiguous."""
    return value.contiguous()


def differentiable(outputs: Sequence[Any]) -> list[int]:
    """Which outputs have a gradient."""
    return [i for i, y in enumerate(outputs) if y.is_floating_point() or y.is_complex()]
