"""Truth in float64, and the error that rounding alone may cause at each element.

For an output element t of an op whose longest reduction has n terms, allowed is

    4 u_out |t|  +  4 sqrt(n) (u |t| + u d)  +  smallest normal number

u_out: unit roundoff of the output's dtype (storing it rounds once). u: unit roundoff of the
arithmetic (float32 for 16-bit formats too, which accumulate in float32).
d = |sum_j x_j df/dx_j xi_j| with random signs xi: how far t moves when every input moves by one
relative unit, measured by evaluating the reference on inputs so perturbed. sqrt(n): rounding errors
of a sum of n terms, even in the worst order, one by one, grow like a random walk (Higham, Accuracy
and Stability of Numerical Algorithms, 2nd ed., section 2.8). The factor 4 is two units in the last
place.

If the eager reference in the case's own dtype needs more than half of that, because its
intermediate results are rounded to 16 bits, the allowance is scaled to twice its worst, up to 64
times; beyond, only for outputs of the sizes that need it: float32 `gelu(-5.6)` is 0, not -6e-8, for
1 + erf(x) cancels, and no perturbation of x shows that.
"""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..errors import AssayError, OpError
from ..faults import told
from ..inputs import dtype_name, dtype_of, to_meta
from ..op import Op

ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-9,
    torch.complex64: 2.0**-24,
    torch.complex128: 2.0**-53,
}
CLASSES = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-9,
    "fast-math": 2.0**-20,
}
"""Unit roundoff of the arithmetic that a variant may declare."""
ALIASES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
DRAWS = 3
STEP = 2.0**-26
"""Relative perturbation of the inputs: small, yet far above float64's own rounding."""
MOST_SCALE = 64.0
"""Most that a poor eager raises the allowance for outputs of every size."""
MOST_RAISED = 2.0**-10
BINADES = 2304
"""Powers of two that a float64 can be near, subnormals included."""
PERIOD = 65_537


@dataclass(frozen=True)
class Expected:
    """What the outputs of one case must be."""

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
    needs: tuple[torch.Tensor, ...] = ()
    """For each output, twice eager's worst share among outputs of each size, by powers of two."""

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
        dtype, size = self.dtypes[index], truth.abs()
        # float32 arithmetic may flush what is subnormal to it, which float16's subnormals are not.
        tiny = torch.finfo(dtype).smallest_normal
        tiny *= torch.finfo(dtype).eps if dtype is torch.float16 else 1.0
        grow = 4 * math.sqrt(self.terms) * roundoff
        base = 4 * ROUNDOFF[dtype] * size + grow * (size + moved) + tiny
        if ROUNDOFF[dtype] > ROUNDOFF[torch.float64]:
            # Where float64 itself cancels to 0, a more accurate kernel need not give 0.
            base = torch.where(size == 0, base + self.vanished, base)
        if not self.needs:
            return self.scale * base
        raised = base * self.needs[index][_binade(size)].clamp_(min=self.scale)
        # However wrong eager is, nothing passes that is off by a thousandth of the largest output.
        most = MOST_RAISED * float(size.nan_to_num(0.0, 0.0, 0.0).max()) if size.numel() else 0.0
        return torch.minimum(raised, (self.scale * base).clamp(min=most))


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
    with torch.no_grad(), _default_float64():
        with watching(op) as watch:
            truth = outputs_of(op, [widen(x) for x in inputs])
        if watch.low:
            raise OpError(
                f"{op.name}: the reference leaves float64: {watch.low[0]}; write it without casts "
                "and without constants of a lower precision, so that it can be the truth"
            )
        exact = [not (t.is_floating_point() or t.is_complex()) for t in truth]
        moved: list[torch.Tensor | None] = [
            None if e else torch.zeros_like(t.abs()) for e, t in zip(exact, truth)
        ]
        for draw in range(DRAWS if not all(exact) else 0):
            shifted = outputs_of(op, [_perturb(widen(x), draw) for x in inputs])
            for total, t, s in zip(moved, truth, shifted):
                if total is not None:
                    step = ((s - t).abs() / STEP).nan_to_num_(0.0, 0.0, 0.0)
                    torch.hypot(total, step, out=total)  # squares would overflow from 1e154 on
    roots = tuple(None if m is None else m / math.sqrt(DRAWS) for m in moved)
    dtypes = tuple(dtype for _, dtype in specs)
    lost = 2.0**-50 * _largest(inputs)
    first = Expected(tuple(truth), roots, dtypes, watch.terms, watch.dots, {}, 1.0, None, lost)
    return _calibrated(op, first, inputs)


def _largest(inputs: tuple[Any, ...]) -> float:
    """The largest finite magnitude among the inputs' floats."""
    floats = [x for x in inputs if isinstance(x, torch.Tensor) and x.dtype in ROUNDOFF]
    sizes = [x.abs().nan_to_num(0.0, 0.0, 0.0).max() for x in floats if x.numel()]
    return max(map(float, sizes), default=0.0)


def _calibrated(op: Op, first: Expected, inputs: tuple[Any, ...]) -> Expected:
    """The same with the eager reference's own error known and, if it is large, allowed for."""
    roundoff = arithmetic([x.dtype for x in inputs if isinstance(x, torch.Tensor)], "")
    try:
        with torch.no_grad():
            eager = outputs_of(op, [clone(x) for x in inputs])
    except OpError:
        return first  # the variant `eager` meets the same error and its row says so
    shares: list[torch.Tensor | None] = []
    for index, (out, truth) in enumerate(zip(eager, first.truth)):
        if first.moved[index] is None or out.shape != truth.shape:
            shares.append(None)
            continue
        error = (out.to(truth.dtype) - truth).abs()
        shares.append(error.div_(first.allowed(index, roundoff)).nan_to_num_(0.0, 0.0, 0.0))
    worst = max((float(s.max()) for s in shares if s is not None and s.numel()), default=0.0)
    scale = min(max(1.0, 2 * worst), MOST_SCALE)
    if 2 * worst <= MOST_SCALE:
        return replace(first, cache={}, scale=scale, eager_worst=worst / scale)
    needs = tuple(_needed(share, truth) for share, truth in zip(shares, first.truth))
    return replace(first, cache={}, scale=scale, eager_worst=0.5, needs=needs)


def _needed(share: torch.Tensor | None, truth: torch.Tensor) -> torch.Tensor:
    """Twice the worst share of the allowance among outputs of each size, by powers of two."""
    needs = torch.ones(BINADES, device=truth.device, dtype=torch.float64)
    if share is None:
        return needs
    for near in (-1, 0, 1):  # the neighbours too: the element itself may have been lucky
        at = (_binade(truth.abs()) + near).clamp_(0, BINADES - 1).reshape(-1)
        needs.scatter_reduce_(0, at, 2 * share.reshape(-1), "amax")
    return needs


def _binade(size: torch.Tensor) -> torch.Tensor:
    """The power of two below each size, as an index."""
    return torch.frexp(size.nan_to_num(0.0, 0.0, 0.0)).exponent.long().add_(BINADES // 2)


def outputs_of(op: Op, inputs: list[Any]) -> list[torch.Tensor]:
    """The reference's outputs as a list. Raises OpError if it raises or they are no tensors."""
    torch.manual_seed(0)
    try:
        made = op.reference(*inputs)
    except (AssayError, torch.cuda.OutOfMemoryError):
        raise
    except Exception as error:
        dtypes = " ".join(dtype_name(x.dtype) for x in inputs if isinstance(x, torch.Tensor))
        raise OpError(f"{op.name}: the reference, on {dtypes}: {told(error)}") from error
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    for index, value in enumerate(outputs):
        if not isinstance(value, torch.Tensor):
            raise OpError(
                f"{op.name}: output {index} of the reference is a {type(value).__name__}; "
                "a reference returns a tensor, or a tuple of tensors"
            )
    return outputs


def clone(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def widen(value: Any) -> Any:
    """A float tensor in float64, a complex one in complex128; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    wide = torch.complex128 if value.is_complex() else torch.float64
    # A copy even of what is wide already: a reference may work in place.
    return value.to(wide, copy=True) if value.dtype in ROUNDOFF else value.clone()


def _perturb(value: Any, draw: int) -> Any:
    if not isinstance(value, torch.Tensor) or value.dtype not in (torch.float64, torch.complex128):
        return value
    generator = torch.Generator().manual_seed(draw + 1)
    # A prime period, so that rows of any usual length meet different signs.
    signs = torch.randint(0, 2, (PERIOD,), generator=generator).to(torch.float64)
    factors = (1 + STEP * (2 * signs - 1)).to(value.device)
    times = -(-value.numel() // PERIOD)
    return value * factors.repeat(times)[: value.numel()].view(value.shape)


@contextmanager
def _default_float64() -> Iterator[None]:
    """So that 1/2 of integers, or torch.ones(3), is float64 in the reference."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


LENGTH = {
    "mm": lambda a: a[0].shape[1],
    "bmm": lambda a: a[0].shape[2],
    "addmm": lambda a: a[1].shape[1],
    "baddbmm": lambda a: a[1].shape[2],
    "dot": lambda a: a[0].numel(),
    "mv": lambda a: a[0].shape[1],
    "convolution": lambda a: a[1].numel() // max(1, a[1].shape[0]),
    "_softmax": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "_log_softmax": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "native_layer_norm": lambda a: math.prod(a[1]),
    "cumsum": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "cumprod": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "_fft_c2c": lambda a: a[0].numel(),
    "_fft_r2c": lambda a: a[0].numel(),
    "_fft_c2r": lambda a: a[0].numel(),
}
"""Terms that one output element of an aten operation sums, from its arguments."""


DOTS = {"mm", "bmm", "addmm", "baddbmm", "dot", "mv", "convolution"}


class watching(TorchDispatchMode):
    """Notes the longest reduction, and every step that leaves float64, with its line."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled under it, and True imports torch._dynamo: most of a child's life.
        return False

    def __init__(self, op: Op):
        super().__init__()
        self.op, self.terms, self.dots = op, 1, False
        self.low: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        name = func._overloadpacket.__name__
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, torch.Tensor)]
        results = [v for v in tree_leaves(made) if isinstance(v, torch.Tensor)]
        self.dots |= name in DOTS
        if name in LENGTH:
            self.terms = max(self.terms, int(LENGTH[name](args)))
        elif given and results and results[0].numel():
            self.terms = max(self.terms, max(v.numel() for v in given) // results[0].numel())
        low = [r.dtype for r in results if _is_low(r.dtype)]
        if low and given:
            self.low.append(f"{name} gives {low[0]} {_line(self.op)}")
        return made


def _is_low(dtype: torch.dtype) -> bool:
    return dtype in ROUNDOFF and ROUNDOFF[dtype] > 2.0**-53


def _line(op: Op) -> str:
    """Where in the user's file the reference is right now."""
    wanted = getattr(getattr(op.reference, "__code__", None), "co_filename", None)
    for frame in reversed(traceback.extract_stack(sys._getframe(2))):
        if frame.filename == wanted:
            return f"at {frame.filename}:{frame.lineno}: {frame.line}"
    return "in the reference"


def output_specs(op: Op, inputs: tuple[Any, ...], case: Any) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each output, by the Op's word or by what the reference gives."""
    from ..op import call_with

    if op.outputs is not None:
        said = call_with(op.outputs, case.values, f"{op.name}: outputs")
        return [(tuple(shape), dtype_of(dtype)) for shape, dtype in said]
    with torch.no_grad():
        try:
            made = outputs_of(op, [clone(x) for x in inputs])
        except OpError as error:  # no such operation for this dtype here? Its shape may be known
            made = _without_values(op, inputs, error)
    return [(tuple(int(s) for s in t.shape), t.dtype) for t in made]


def _without_values(op: Op, inputs: tuple[Any, ...], error: OpError) -> list[torch.Tensor]:
    """The reference's outputs on tensors that hold no values; else raises the first error."""
    try:
        return outputs_of(op, [to_meta(x) for x in inputs])
    except OpError:  # it makes tensors of its own on a device
        # Imported only here: it brings torch._dynamo, which would be half of a child's life.
        from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs]
        try:
            return outputs_of(op, fakes)
        except OpError:
            raise error from None
