"""Which precision class a variant has: what it is judged by, and what wrong values look like.

Wrong values all over an output are held against what arithmetic of each class would give: values
that the class has, products of rounded operands, rounded inputs, a running total that is rounded.
An error that grows with the length of a sum is no class of its own, but wrong, and said so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import torch

from ..errors import OpError
from ..inputs import dtype_name
from ..op import Op
from ..types import Verdict
from .budget import ALIASES, CLASSES, Expected
from .compare import shares, within
from .emulate import with_poorer, with_rounded_inputs

MANY = 0.05
"""Share of the elements that must be wrong for a class to explain them."""
MOST = 1 << 22
"""Elements of inputs up to which the reference is run again in poorer arithmetic."""
MANY_TERMS = 16
ADVICE = 'ask for IEEE arithmetic (Triton: input_precision="ieee"), or declare precision='
Answer = Callable[[], "list[torch.Tensor] | None"]


def class_of(roundoff: float, declared: str) -> str:
    """The precision class that a variant is judged by."""
    if declared:
        return ALIASES.get(declared, declared)
    return "float32" if roundoff >= CLASSES["float32"] else "float64"


def explained(
    found: Verdict,
    op: Op,
    inputs: tuple[Any, ...],
    outs: list[torch.Tensor],
    expected: Expected,
    roundoff: float,
    declared: str,
) -> Verdict:
    """A verdict on wrong values, with the precision class that explains them, if one does."""
    bad, total = found.bad or 0, found.total or 0
    floats = all(out.is_floating_point() or out.is_complex() for out in outs)
    if not floats or bad < MANY * total or op.limit is not None:
        return found
    name = _lower(op, inputs, outs, expected, roundoff)
    if name:
        said = class_of(roundoff, declared)
        detail = f"{bad:,} of {total:,} elements: looks like {name}, declared {said}"
        return msgspec.structs.replace(
            found, word="lower precision", detail=detail, advice=ADVICE, precision=name
        )
    total_in = _adds_up(op, inputs, outs, expected)
    if total_in:
        detail = f"{found.detail}; adds up in {total_in}: error grows with n"
        return msgspec.structs.replace(
            found,
            detail=detail,
            advice="keep the running total in float32, and round once at the end",
            precision=f"{total_in} accumulation",
        )
    return found


def _lower(
    op: Op, inputs: tuple[Any, ...], outs: list[torch.Tensor], expected: Expected, roundoff: float
) -> str:
    """The lower class of arithmetic that explains these outputs, or empty."""
    if any(out.dtype.itemsize < 4 for out in outs):
        return ""
    for name in ("bfloat16", "float16", "float32"):
        # Every value is one that the lower format has.
        low = getattr(torch, name)
        held = all(not o.is_complex() and torch.equal(o, o.to(low).to(o.dtype)) for o in outs)
        if held and CLASSES[name] > roundoff and _within(outs, expected, CLASSES[name]):
            return name
    for name, answer in _answers(op, inputs, roundoff).items():
        if _matches(outs, expected, roundoff, answer):
            return name
    if (
        expected.dots
        and roundoff <= CLASSES["float32"]
        and _within(outs, expected, CLASSES["tf32"])
    ):
        return "tf32"
    fast = CLASSES["fast-math"]
    if CLASSES["float32"] <= roundoff < fast and all(
        within(out, truth, expected.allowed(index, fast))
        for index, (out, truth) in enumerate(zip(outs, expected.truth))
    ):
        return "fast-math"
    return ""


def _within(outs: list[torch.Tensor], expected: Expected, roundoff: float) -> bool:
    return all(
        bool((shares(out, truth, _loose(expected, index, roundoff))[0] <= 1).all())
        for index, (out, truth) in enumerate(zip(outs, expected.truth))
    )


def _loose(expected: Expected, index: int, roundoff: float) -> torch.Tensor:
    """What one rounding of each input to a lower class explains: no growth with the length."""
    moved = expected.moved[index]
    if moved is None:
        return torch.zeros_like(expected.truth[index], dtype=torch.float64)
    typical = moved.square().mean().sqrt()  # a few draws say little of a single element
    return 4 * roundoff * (expected.truth[index].abs() + moved.clamp(min=typical))


def _answers(op: Op, inputs: tuple[Any, ...], roundoff: float) -> dict[str, Answer]:
    """The right answers of a float32 kernel that rounds first, by what it looks like."""
    size = sum(x.numel() for x in inputs if isinstance(x, torch.Tensor))
    if roundoff > CLASSES["float32"] or size > MOST:
        return {}
    return {
        "tf32": lambda: with_poorer(op, inputs, products="tf32"),
        "bfloat16 products": lambda: with_poorer(op, inputs, products="bfloat16"),
        "bfloat16 inputs": lambda: with_rounded_inputs(op, inputs, "bfloat16"),
        "float16 inputs": lambda: with_rounded_inputs(op, inputs, "float16"),
    }


def _matches(outs: list[torch.Tensor], expected: Expected, roundoff: float, answer: Answer) -> bool:
    """Whether the outputs are right, within what rounding allows, for inputs so rounded."""
    try:
        made = answer()
    except OpError:
        return False  # the reference takes no such input
    if made is None or any(m.shape != t.shape for m, t in zip(made, expected.truth)):
        return False
    return all(
        within(out, m.to(truth.device), 2 * expected.allowed(index, roundoff))
        for index, (out, m, truth) in enumerate(zip(outs, made, expected.truth))
    )


def _adds_up(op: Op, inputs: tuple[Any, ...], outs: list[torch.Tensor], expected: Expected) -> str:
    """The 16-bit format of a running total that explains the size of the errors, or empty."""
    size = sum(x.numel() for x in (*inputs, *outs) if isinstance(x, torch.Tensor))
    if expected.terms < MANY_TERMS or size > MOST:
        return ""
    kinds = {dtype_name(x.dtype) for x in (*inputs, *outs) if isinstance(x, torch.Tensor)}
    formats = ("bfloat16", "float16")
    for name in [f for f in formats if f in kinds] or formats:
        made = with_poorer(op, inputs, sums=name)
        if made is not None and all(
            _as_wrong(out, m, truth) for out, m, truth in zip(outs, made, expected.truth)
        ):
            return name
    return ""


ALIKE, BETTER = 4.0, 16.0
"""How much worse, and how much better, another order of the same sum may be than one by one."""
FEW = 8
"""Elements of which a median says something."""


def _as_wrong(out: torch.Tensor, emulated: torch.Tensor, truth: torch.Tensor) -> bool:
    """Whether an output errs as a rounded running total does: there, or by as much all over."""
    if out.shape != emulated.shape or not bool(truth.isfinite().all()):
        return False
    mine, theirs = (t.to(truth.device, truth.dtype) - truth for t in (out, emulated))
    if not bool(mine.isfinite().all()):
        return False
    scale = float(theirs.abs().square().mean().sqrt())
    apart = float((mine - theirs).abs().square().mean().sqrt())
    if scale > 0 and apart <= scale / ALIKE:
        return True
    if out.numel() < FEW or bool((out == out.reshape(-1)[0]).all()):
        return False  # one value everywhere is no sum of anything
    middle, other = (float(e.abs().median()) for e in (mine, theirs))
    return other > 0 and 1 / BETTER <= middle / other <= ALIKE
