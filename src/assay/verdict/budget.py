"""Truth in float64, and the error that rounding alone may cause at each element.

For an output element t of an op whose longest reduction has n terms, allowed is

    4 u_out |t|  +  4 sqrt(n) (u |t| + u d)  +  smallest normal number

u_out: unit roundoff of the output's dtype (storing it rounds once). u: unit roundoff of the
arithmetic (float32 for 16-bit formats too, which accumulate in float32).
d = |sum_j x_j df/dx_j xi_j| with random xi of either sign: how far t moves when every input moves
by one relative unit, measured by evaluating the reference on inputs so perturbed. |xi| lies between
1/2 and 3/2: by signs alone, a difference of two equals would not move where both have one sign.
sqrt(n): rounding errors of a sum of n terms, even in the worst order, one by one, grow like a
random walk (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 2.8). The
factor 4 is two units in the last place.

If the eager reference in the case's own dtype needs more than a quarter of that, because its
intermediate results are rounded, the allowance is scaled to four times its worst (of few elements:
on inputs near these too), up to 64 times or half of the output; beyond, only for outputs of the
sizes that need it: float32 `gelu(-5.6)` is 0, not -6e-8, for 1 + erf(x) cancels, and no
perturbation of x shows that. In float64 eager is the truth itself: own_rounding.py asks float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..errors import OpError
from ..inputs import dtype_name
from ..op import Op
from .binades import Compared, beside, binade, missed, needed, of_largest, spread_out
from .chunks import add_in_square, all_within, largest_share, root_mean, summed
from .own_rounding import of_float32
from .perturb import ROUNDOFF, nudge, perturb
from .reductions import watching
from .reference import clone, default_float64, outputs_of, widen

CLASSES = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "fast-math": 2.0**-20,
}
"""Unit roundoff of the arithmetic that a variant may declare."""
ALIASES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
DRAWS, QUICK_DRAWS = 6, 4
"""Perturbations that d is the root mean square of. Of k, all move an element of a long sum by less
than a tenth of the usual once in 10^(k+1) elements, and a difference of two equals once in 10^k: in
that many it would be judged too hard."""
EAGER = 4.0
"""A kernel may err so many times as far as eager: its tanh or exp may be off by two units in the
last place where eager's is by half a one."""
FEW, AGAIN = 1 << 12, 3
"""Up to so many elements of output an eager that needs more is tried on so many more inputs, moved
a little: where results cancel, the largest few elements decide, and there it may have been lucky.
"""
FEW_WIDE = 1 << 16
"""The same in float64, of which each is in doubt."""
MANY = 1 << 24  # elements of input: it is done on the CPU
LUCK = 4.0
"""And so much further off at most it is held to be there."""
STEP = 2.0**-26
"""Relative perturbation of the inputs: small, yet far above float64's own rounding."""
LARGE = 1 << 20
"""Elements of an output from which d is measured in float32, a fraction of the cost."""
QUICK_STEP = 2.0**-14
"""The perturbation there. float32's rounding moves an output by about 2^-24 d, so d is known to
2^-10; and 1e4 in an exponent moves by less than 1, so that exp stays near its tangent."""
MOST_SCALE = 64.0
"""Most that a poor eager raises the allowance for outputs of every size."""
MOST_SHARE = 0.5
"""And most of an output that may so become its allowance: zeros must stay wrong."""


@dataclass(frozen=True)
class Truth:
    """What the outputs of one case would be without rounding."""

    outputs: tuple[torch.Tensor, ...]
    """In float64, or exact."""
    dtypes: tuple[torch.dtype, ...]
    terms: int
    """Length of the longest reduction."""
    dots: bool

    def surely_has(self, outs: list[torch.Tensor], roundoff: float) -> bool:
        """Whether these are right whatever d is: each within what is allowed for d = 0.

        True is proof; False says nothing. A fraction of the cost of d.
        """
        return all(
            _inexact(truth)
            and out.shape == truth.shape
            and self._surely(out, truth, dtype, roundoff)
            for out, truth, dtype in zip(outs, self.outputs, self.dtypes)
        )

    def _surely(
        self, out: torch.Tensor, truth: torch.Tensor, dtype: torch.dtype, roundoff: float
    ) -> bool:
        grow = 4 * math.sqrt(self.terms) * roundoff
        return all_within(out, truth, 4 * ROUNDOFF[dtype] + grow, smallest(dtype))


@dataclass(frozen=True)
class Expected:
    """What the outputs of one case must be, and how far from it each may lie."""

    truth: tuple[torch.Tensor, ...]
    moved: tuple[torch.Tensor | None, ...]
    """d above, for each output; None where the output must be exact (integers, booleans)."""
    dtypes: tuple[torch.dtype, ...]
    terms: int
    dots: bool
    """Whether there is a matrix product or convolution, which tf32 would affect."""
    cache: dict[tuple[int, float, float | None], torch.Tensor]
    """Allowances already computed."""
    scale: float
    """How much the allowance is raised because eager itself needs it."""
    eager_worst: float | None
    vanished: float = 0.0
    """What float64 loses in cancellation: 8 units in the last place of the largest input."""
    roundoff: float = 0.0
    """Unit roundoff of the arithmetic that eager was judged by."""
    eager_rms: float | None = None
    """Root mean square of eager's errors in units of the allowance; None if that has `needs`."""
    needs: tuple[torch.Tensor, ...] = ()
    """For each output, EAGER times eager's worst share among those of each power of two."""
    missed: tuple[torch.Tensor, ...] = ()
    """For each output, EAGER times eager's largest error in rows whose largest output is of each
    power of two."""

    @property
    def tight(self) -> bool:
        """Whether less than EAGER times eager's own error is allowed, since that is too much."""
        worst = math.inf if self.eager_worst is None else self.eager_worst
        return bool(self.needs) and worst > (1 + 2.0**-20) / EAGER

    def allowed(self, index: int, roundoff: float, limit: float | None = None) -> torch.Tensor:
        """Allowed |error| for each element of one output."""
        key = index, roundoff, limit
        if key not in self.cache:
            self.cache[key] = self._allowed(*key)
        return self.cache[key]

    def _allowed(self, index: int, roundoff: float, limit: float | None) -> torch.Tensor:
        truth, moved = self.truth[index], self.moved[index]
        if moved is None:
            return torch.zeros_like(truth, dtype=torch.float64)
        if limit is not None:
            return torch.full_like(truth.abs(), limit)
        dtype = self.dtypes[index]
        tiny = smallest(dtype)
        grow = 4 * math.sqrt(self.terms) * roundoff
        # Where float64 itself cancels to 0, a more accurate kernel need not give 0.
        lost = self.vanished if ROUNDOFF[dtype] > ROUNDOFF[torch.float64] else 0.0
        base = summed(truth, moved, 4 * ROUNDOFF[dtype] + grow, grow, tiny, lost)
        if not self.needs:
            return base.mul_(self.scale)
        size = truth.abs()
        raised = base * self.needs[index][binade(size)].clamp_(min=self.scale)
        # However wrong eager is, nothing passes that is off by more than a share of the largest
        # beside it; or, where eager's intermediate results cost more than that, of all.
        groups, share = beside(size), of_largest(dtype)
        whole = share * (groups.amax() if groups.numel() else 0.0)
        eager = self.missed[index][binade(groups)]
        half = MOST_SHARE * groups  # zeros must stay wrong, unless eager is no better itself
        eager = torch.where(eager < EAGER * half, torch.minimum(eager, half), eager)
        most = spread_out(torch.maximum(groups.mul_(share), eager.clamp_(max=whole)), size)
        return torch.minimum(raised, torch.maximum(base.mul_(self.scale), most))


def smallest(dtype: torch.dtype) -> float:
    """What any result may be off by: the smallest normal number.

    float32 arithmetic may flush what is subnormal to it, which float16's subnormals are not.
    """
    tiny = torch.finfo(dtype).smallest_normal
    return tiny * torch.finfo(dtype).eps if dtype is torch.float16 else tiny


def arithmetic(dtypes: list[torch.dtype], precision: str) -> float:
    """Unit roundoff that a variant's declared class, or else its inputs' dtype, permits."""
    if precision:
        name = ALIASES.get(precision, precision)
        if name not in CLASSES:
            raise OpError(f"no precision class {precision!r}; say one of {', '.join(CLASSES)}")
        return CLASSES[name]
    floats = [d for d in dtypes if d in ROUNDOFF]
    return min([min(ROUNDOFF[d], 2.0**-24) for d in floats], default=2.0**-53)


def expect(op: Op, inputs: tuple[Any, ...], specs: list[tuple[Any, torch.dtype]]) -> Expected:
    """The truth for these inputs (in the case's dtypes), and how far rounding may lead from it.

    Raises OpError if the reference leaves float64 or gives other outputs than `specs` says.
    """
    return budgeted(op, inputs, truth_of(op, inputs, specs))


def truth_of(op: Op, inputs: tuple[Any, ...], specs: list[tuple[Any, torch.dtype]]) -> Truth:
    """The reference in float64. Raises as `expect`, and for an output in 8 bits."""
    for _, dtype in specs:
        if dtype.is_floating_point and dtype not in ROUNDOFF:
            raise OpError(
                f"{op.name}: an output in {dtype_name(dtype)} is not judged: torch moves it and "
                "computes nothing in it; return its bits as uint8 where they are to be exact, or "
                "the values in float32 before they are rounded"
            )
    with torch.no_grad(), default_float64(), watching(op) as watch:
        outputs = outputs_of(op, [widen(x) for x in inputs])
    if watch.low:
        raise OpError(
            f"{op.name}: the reference leaves float64: {watch.low[0]}; write it without casts "
            "and without constants of a lower precision, so that it can be the truth"
        )
    dtypes = tuple(dtype for _, dtype in specs)
    return Truth(tuple(outputs), dtypes, watch.terms, watch.dots)


def budgeted(op: Op, inputs: tuple[Any, ...], truth: Truth) -> Expected:
    """How far from the truth for these inputs rounding may lead."""
    outputs = truth.outputs
    with torch.no_grad(), default_float64():
        moved = _moves(op, inputs, list(outputs))
    lost = 2.0**-50 * _largest(inputs)
    first = Expected(outputs, moved, truth.dtypes, truth.terms, truth.dots, {}, 1.0, None, lost)
    return _calibrated(op, first, inputs)


def _moves(
    op: Op, inputs: tuple[Any, ...], truth: list[torch.Tensor]
) -> tuple[torch.Tensor | None, ...]:
    """How far each output moves when every input moves by one relative unit: d above."""
    if not any(_inexact(t) for t in truth):
        return (None,) * len(truth)
    if not _large(inputs, truth):
        return _moved(op, [widen(x) for x in inputs], truth, DRAWS, STEP)
    narrow = [
        x.float() if isinstance(x, torch.Tensor) and x.dtype in ROUNDOFF else x for x in inputs
    ]
    base = outputs_of(op, [clone(x) for x in narrow])
    return _moved(op, narrow, base, QUICK_DRAWS, QUICK_STEP)


def _moved(
    op: Op, inputs: list[Any], base: list[torch.Tensor], draws: int, step: float
) -> tuple[torch.Tensor | None, ...]:
    moved = [_zeros(t) if _inexact(t) else None for t in base]
    for draw in range(draws):
        shifted = outputs_of(op, perturb(inputs, draw, lambda x: step))
        for total, before, after in zip(moved, base, shifted):
            if total is not None:
                add_in_square(total, before, after)
    for total in moved:
        if total is not None:
            total.div_(step * math.sqrt(draws))
    return tuple(moved)


def _zeros(like: torch.Tensor) -> torch.Tensor:
    """Of its shape, and real; contiguous, as it may not be itself."""
    return torch.zeros(like.shape, dtype=like.abs().dtype, device=like.device)


def _inexact(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def _large(inputs: tuple[Any, ...], truth: list[torch.Tensor]) -> bool:
    """Whether d is measured in float32: there is much of it, and no float64 or complex input."""
    given = [x.dtype for x in inputs if isinstance(x, torch.Tensor)]
    fine = all(ROUNDOFF.get(dtype, 1.0) > 2.0**-53 and not dtype.is_complex for dtype in given)
    return fine and any(t.numel() >= LARGE and not t.is_complex() for t in truth)


def _largest(inputs: tuple[Any, ...]) -> float:
    """The largest finite magnitude among the inputs' floats."""
    floats = [x for x in inputs if isinstance(x, torch.Tensor) and x.dtype in ROUNDOFF]
    return max((_magnitude(x) for x in floats if x.numel()), default=0.0)


def _magnitude(value: torch.Tensor) -> float:
    if not value.is_complex():
        low, high = torch.aminmax(value)
        size = max(-float(low), float(high))
        if math.isfinite(size):
            return size
    return float(value.abs().nan_to_num(0.0, 0.0, 0.0).max())


def _calibrated(op: Op, first: Expected, inputs: tuple[Any, ...]) -> Expected:
    """The same with the eager reference's own error known and, if it is large, allowed for."""
    roundoff = arithmetic([x.dtype for x in inputs if isinstance(x, torch.Tensor)], "")
    try:
        with torch.no_grad():
            eager = outputs_of(op, [clone(x) for x in inputs])
    except OpError:
        return first  # the variant `eager` meets the same error and its row says so
    own = _compared(first, eager, roundoff)
    found = [largest_share(*one, lenient=True) for one in own if one]
    worst = max((share for share, _, _ in found), default=0.0)
    rms = root_mean([squares for _, _, squares in found], [one[0] for one in own if one])
    low = []
    if roundoff <= ROUNDOFF[torch.float64]:
        few = sum(t.numel() for t in first.truth) <= FEW_WIDE
        draws = range(DRAWS, DRAWS + AGAIN * few)
        moved = of_float32(op, inputs, first.truth, draws, MANY)
        low = [_compared(first, outputs, roundoff) for outputs in moved]
    need = max(worst, _most(low))
    coarsest = max((ROUNDOFF[d] for d in first.dtypes if d in ROUNDOFF), default=0.0)
    most = min(MOST_SCALE, MOST_SHARE / (4 * coarsest)) if coarsest else MOST_SCALE
    near = _nearby(op, first, inputs, roundoff) if EAGER * need > 1.0 else []
    most_of_all = min(max(need, _most(near)), LUCK * need)
    scale = min(max(1.0, EAGER * most_of_all), most)
    if EAGER * most_of_all <= most:
        cache = first.cache if scale == 1.0 else {}
        return replace(
            first,
            cache=cache,
            scale=scale,
            roundoff=roundoff,
            eager_worst=worst / scale,
            eager_rms=None if rms is None else rms / scale,
        )

    def over_all(table: Callable[..., torch.Tensor]) -> tuple[torch.Tensor, ...]:
        return tuple(
            torch.stack([table(one, truth, EAGER) for one in each]).amax(0)
            for truth, *each in zip(first.truth, own, *low, *near)
        )

    needs, off = over_all(needed), over_all(missed)
    raised = replace(first, cache={}, scale=scale, needs=needs, missed=off)
    again = [one for one in _compared(raised, eager, roundoff) if one]
    left = max((largest_share(*one, lenient=True)[0] for one in again), default=0.0)
    return replace(raised, eager_worst=left if math.isfinite(left) else None)


def _most(tries: Sequence[Sequence[Compared | None]]) -> float:
    """The largest share of what is allowed, of all outputs."""
    each = (one for compared in tries for one in compared if one)
    return max((largest_share(*one, lenient=True)[0] for one in each), default=0.0)


def _compared(
    expected: Expected, eager: list[torch.Tensor], roundoff: float
) -> list[Compared | None]:
    """Of each output; None where nothing can be said."""
    return [
        (out, truth, expected.allowed(index, roundoff))
        if expected.moved[index] is not None and out.shape == truth.shape
        else None
        for index, (out, truth) in enumerate(zip(eager, expected.truth))
    ]


def _nearby(
    op: Op, first: Expected, inputs: tuple[Any, ...], roundoff: float
) -> list[list[Compared | None]]:
    """The same of each output on inputs near these, several times; empty where there are many.

    On the CPU: a reference that leaves its tensors for such inputs raises there, and on a GPU would
    cost the process its context.
    """
    given = sum(x.numel() for x in inputs if isinstance(x, torch.Tensor))
    if sum(t.numel() for t in first.truth) > FEW or given > MANY:
        return []
    made = []
    here = [x.cpu() if isinstance(x, torch.Tensor) else x for x in inputs]
    moved = tuple(None if d is None else d.cpu() for d in first.moved)
    for draw in range(AGAIN):
        near = perturb(here, DRAWS + draw, nudge)
        try:
            with torch.no_grad(), default_float64():
                truths = outputs_of(op, [widen(x) for x in near])
            with torch.no_grad():
                eager = outputs_of(op, near)
        except OpError:  # such inputs are none of its
            continue
        if [t.shape for t in truths] != [t.shape for t in first.truth]:
            continue
        there = replace(first, truth=tuple(truths), moved=moved, cache={})
        made.append(_compared(there, eager, roundoff))
    return made
