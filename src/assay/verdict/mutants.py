"""Wrong answers made of the right one: what broken kernels return, whatever the Op.

A check is worth what it would notice. strength.py asks which of these the cases of an Op tell from
the right answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ..errors import OpError
from ..op import Op
from .budget import ROUNDOFF, Expected
from .emulate import with_poorer, with_rounded_inputs
from .reference import clone, outputs_of

Outputs = list[torch.Tensor]


@dataclass(frozen=True, eq=False)
class Right:
    """The right answer of one case under one seed, as a kernel would return it."""

    op: Op
    inputs: tuple[Any, ...]
    expected: Expected
    outputs: Outputs
    """The truth rounded to the outputs' dtypes."""
    first: Right | None
    """That of the same case under the first seed, if this is the second."""
    constant: list[float | None]
    """For each output, the mean of the first answer of the set."""


@dataclass(frozen=True)
class Mutant:
    """One wrong answer, as a function of the right one."""

    name: str
    make: Callable[[Right], Outputs | None]
    """None where there is no such answer: no rows to swap, no other output."""
    idle: bool = False
    """What a kernel returns that computes nothing: it must be noticed somewhere."""
    fine: bool = False
    """Off by little: what the allowance of a sound check may have to let through."""
    heavy: bool = False
    """Needs the reference once more."""


def mutants(op: Op, names: list[str]) -> list[Mutant]:
    """All of them for an Op whose inputs have these names."""
    copies = [
        Mutant(f"a copy of `{name}`", partial(_copied, index), idle=True)
        for index, name in enumerate(names)
    ]
    tails = [
        Mutant(f"the last quarter of `{name}` taken for zeros", partial(_cut, index), heavy=True)
        for index, name in enumerate(names[:MOST_INPUTS])
    ]
    return [*IDLE, *copies, *PLAIN, *tails, *FINE]


MOST_INPUTS = 3


def _each(change: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable[[Right], Any]:
    """A change to every output that has what it takes; None if none has."""

    def make(right: Right) -> Outputs | None:
        made = [change(out.clone()) for out in right.outputs]
        if all(value is None for value in made):
            return None
        return [out if m is None else m for m, out in zip(made, right.outputs)]

    return make


def _constant(right: Right) -> Outputs | None:
    if all(value is None for value in right.constant):
        return None
    return [
        out if value is None else torch.full_like(out, value)
        for value, out in zip(right.constant, right.outputs)
    ]


def _copied(index: int, right: Right) -> Outputs | None:
    given = right.inputs[index] if index < len(right.inputs) else None
    if not isinstance(given, torch.Tensor) or not given.numel():
        return None
    made = [
        given.to(out.device, out.dtype, copy=True)
        if given.shape == out.shape and given.is_complex() <= out.is_complex()
        else out
        for out in right.outputs
    ]
    changed = any(m is not out for m, out in zip(made, right.outputs))
    return made if changed else None


def _no_last(out: torch.Tensor) -> torch.Tensor | None:
    if out.numel() < 2 or out.shape[-1] < 2:
        return None
    out[..., -1] = 0
    return out


def _no_last_row(out: torch.Tensor) -> torch.Tensor | None:
    if out.dim() < 2 or out.shape[0] < 2:
        return None
    out[-1] = 0
    return out


def _block_alone(out: torch.Tensor) -> torch.Tensor | None:
    size = out.shape[-1] if out.dim() else 0
    if size < 2:
        return None
    out[..., 1 << ((size - 1).bit_length() - 1) :] = 0
    return out


def _shifted(out: torch.Tensor) -> torch.Tensor | None:
    return out.view(-1).roll(1).view(out.shape) if out.numel() > 1 else None


def _transposed(out: torch.Tensor) -> torch.Tensor | None:
    if out.dim() < 2 or min(out.shape[-2:]) < 2:
        return None
    return out.transpose(-1, -2).reshape(out.shape)


def _swapped(out: torch.Tensor) -> torch.Tensor | None:
    rows = out.shape[0] if out.dim() else 0
    if rows < 2:
        return None
    many = max(1, rows // 8)  # more than one where there are: two can be alike by chance
    first = out[:many].clone()
    out[:many], out[-many:] = out[-many:].clone(), first
    return out


def _first_row_alone(out: torch.Tensor) -> torch.Tensor | None:
    if out.dim() < 2 or out.shape[0] < 2:
        return None
    return out[:1].expand(out.shape).clone()


def _negated(out: torch.Tensor) -> torch.Tensor | None:
    signed = out.is_floating_point() or out.is_complex() or out.dtype.is_signed
    return -out if signed and out.dtype is not torch.bool else None


def _one_nan(out: torch.Tensor) -> torch.Tensor | None:
    if not out.is_floating_point() or not bool((~out.isnan()).any()):
        return None
    out.view(-1)[int((~out.isnan()).reshape(-1).nonzero()[-1])] = torch.nan
    return out


def _stale(right: Right) -> Outputs | None:
    if right.first is None:
        return None
    first = right.first.outputs
    return first if [t.shape for t in first] == [t.shape for t in right.outputs] else None


def _first_alone(right: Right) -> Outputs | None:
    if len(right.outputs) < 2:
        return None
    return [right.outputs[0], *(torch.zeros_like(out) for out in right.outputs[1:])]


def _cut(index: int, right: Right) -> Outputs | None:
    """A masked load that misses the end: of a product's first operand, the last block of K."""
    given = right.inputs[index] if index < len(right.inputs) else None
    if not isinstance(given, torch.Tensor) or given.dtype not in ROUNDOFF or not given.dim():
        return None
    size = given.shape[-1]
    if size < 2 or not given.numel():
        return None
    short = given.clone(memory_format=torch.contiguous_format)
    short[..., size - max(1, size // 4) :] = 0
    inputs = (*right.inputs[:index], short, *right.inputs[index + 1 :])
    return _run(right, lambda: with_rounded_inputs(right.op, inputs, "float64"))


def _run(right: Right, answer: Callable[[], Outputs | None]) -> Outputs | None:
    """An answer of the reference in the outputs' dtypes; None where it has none."""
    try:
        made = answer()
    except OpError:
        return None  # the reference takes no such input: then no kernel returns this
    if made is None or [t.shape for t in made] != [t.shape for t in right.outputs]:
        return None
    return [m.to(out.device, out.dtype) for m, out in zip(made, right.outputs)]


def _one_off(out: torch.Tensor) -> torch.Tensor | None:
    """The largest finite element by 1 %, or by 8 roundings; an exact one by 1."""
    if not out.numel():
        return None
    flat = out.view(-1)
    if out.dtype is torch.bool:
        flat[-1] = ~flat[-1]
    elif out.dtype not in ROUNDOFF:
        flat[-1] += 1
    else:
        at = int(flat.abs().nan_to_num(0.0, 0.0, 0.0).argmax())
        flat[at] *= 1 + _little(out.dtype, 0.01)
    return out


def _scaled(out: torch.Tensor) -> torch.Tensor | None:
    return out * (1 + _little(out.dtype, 0.001)) if out.dtype in ROUNDOFF else None


def _little(dtype: torch.dtype, share: float) -> float:
    """A share, or more where so little is next to nothing in the dtype."""
    return max(share, 8 * ROUNDOFF[dtype])


def _lower(name: str, right: Right) -> Outputs | None:
    """The reference in a lower dtype altogether."""
    low = getattr(torch, name)
    if _coarsest(right) > ROUNDOFF[torch.float32]:
        return None
    inputs = [
        x.to(low) if isinstance(x, torch.Tensor) and x.is_floating_point() else clone(x)
        for x in right.inputs
    ]

    def answer() -> Outputs:
        with torch.no_grad():
            return outputs_of(right.op, inputs)

    return _run(right, answer)


def _coarsest(right: Right) -> float:
    """Unit roundoff of the coarsest float among the inputs; 1 without any."""
    floats = [x for x in right.inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
    return max((ROUNDOFF.get(x.dtype, 1.0) for x in floats), default=1.0)


def _running(right: Right) -> Outputs | None:
    return _run(right, lambda: with_poorer(right.op, right.inputs, sums="bfloat16"))


def _products(name: str, right: Right) -> Outputs | None:
    if _coarsest(right) != ROUNDOFF[torch.float32]:
        return None
    return _run(right, lambda: with_poorer(right.op, right.inputs, products=name))


IDLE = (
    Mutant("zeros", _each(torch.zeros_like), idle=True),
    Mutant("one constant", _constant, idle=True),
)
PLAIN = (
    Mutant("the last row missing", _each(_no_last_row)),
    Mutant("nothing after a power of two", _each(_block_alone)),
    Mutant("shifted by one", _each(_shifted)),
    Mutant("transposed", _each(_transposed)),
    Mutant("first and last rows swapped", _each(_swapped)),
    Mutant("the first row everywhere", _each(_first_row_alone)),
    Mutant("the sign flipped", _each(_negated)),
    Mutant("one NaN", _each(_one_nan)),
    Mutant("the answer to other inputs", _stale),
    Mutant("only the first output", _first_alone),
)
FINE = (
    # One element may by chance be smaller than what it is allowed: that proves nothing.
    Mutant("the last of each row missing", _each(_no_last), fine=True),
    Mutant("one element slightly off", _each(_one_off), fine=True),
    Mutant("all slightly too large", _each(_scaled), fine=True),
    Mutant("computed in bfloat16", partial(_lower, "bfloat16"), fine=True, heavy=True),
    Mutant("computed in float16", partial(_lower, "float16"), fine=True, heavy=True),
    Mutant("added up in bfloat16", _running, fine=True, heavy=True),
    Mutant("products in tf32", partial(_products, "tf32"), fine=True, heavy=True),
    Mutant("products in bfloat16", partial(_products, "bfloat16"), fine=True, heavy=True),
)
