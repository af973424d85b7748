"""Bytes from the candidate against the truth: the first thing that is wrong, named with its place."""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from ..inputs import dtype_name
from ..types import Verdict
from .budget import CLASSES, Expected
from .buffers import Received
from .protocol import Ran, Shipped


def shape_of(shape: Any) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def place(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the `flat`-th element in row-major order."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def form(ran: Ran, specs: list[tuple[tuple[int, ...], torch.dtype]], device: str) -> Verdict | None:
    """Number, kind, shape, dtype and device of the outputs."""
    if len(ran.outputs) != len(specs):
        return Verdict(
            word="wrong shape",
            detail=f"{len(ran.outputs)} outputs, expected {len(specs)}",
            advice="return every output that the reference returns, in its order",
        )
    for index, (out, (shape, dtype)) in enumerate(zip(ran.outputs, specs)):
        name = f"output {index}: " if len(specs) > 1 else ""
        if out.kind != "tensor":
            return Verdict(
                word="wrong dtype",
                detail=f"{name}a {out.kind}, expected a plain dense tensor",
                advice="return a torch.Tensor that holds its values",
            )
        if out.shape != tuple(shape):
            return Verdict(
                word="wrong shape",
                detail=f"{name}{shape_of(out.shape)}, expected {shape_of(shape)}",
                advice="a shape that broadcasts is not the same shape",
            )
        if out.dtype != dtype_name(dtype):
            return Verdict(
                word="wrong dtype",
                detail=f"{name}{out.dtype}, expected {dtype_name(dtype)}",
                advice=f"allocate the output with dtype=torch.{dtype_name(dtype)}",
            )
        if torch.device(out.device).type != torch.device(device).type:
            return Verdict(
                word="wrong device",
                detail=f"{name}{out.device}, expected {device}",
                advice="allocate the output beside the inputs: torch.empty_like(x)",
            )
    return None


def memory(first: Ran, second: Ran, names: list[str], mutates: tuple[str, ...]) -> Verdict | None:
    """Guards, aliases and elements never written."""
    for ran in (first, second):
        tensors = [(f"output {i}", s) for i, s in enumerate(ran.outputs)]
        tensors += [(names[i], s) for i, s in ran.inputs]
        for name, shipped in tensors:
            found = _outside(name, Received(shipped), ran.poison)
            if found:
                return found
    for index, out in enumerate(first.outputs):
        if out.shares:
            return Verdict(
                word="shares memory",
                detail=f"output {index} lies in the memory of {out.shares}",
                advice="allocate it, or declare the input with mutates=",
            )
    for index, (one, two) in enumerate(zip(first.outputs, second.outputs)):
        found = _unwritten(index, one, two, first.poison, second.poison)
        if found:
            return found
    return None


def _outside(name: str, received: Received, poison: int) -> Verdict | None:
    before, after = received.outside(poison)
    gaps = received.gaps_written(poison)
    if not before and not after and not gaps:
        return None
    size = torch.empty(0, dtype=getattr(torch, received.shipped.dtype)).element_size()
    found = []
    for count, where in ((before, "before the start"), (after, "after the end"), (gaps, "between")):
        if count:
            values = -(-count // size)
            found.append(f"{values:,} value{'s' if values > 1 else ''} {where}")
    return Verdict(
        word="wrote outside",
        detail=f"{' and '.join(found)} of {name}",
        advice="mask the store: only indices below the size may be written",
    )


def _unwritten(index: int, one: Shipped, two: Shipped, first: int, second: int) -> Verdict | None:
    if not one.fenced or not two.fenced or one.shape != two.shape:
        return None
    left = Received(one).still_poison(first) & Received(two).still_poison(second)
    count = int(left.sum())
    if not count:
        return None
    at = place(int(left.reshape(-1).nonzero()[0]), one.shape)
    return Verdict(
        word="not written",
        detail=f"{count:,} of {left.numel():,} elements of output {index}, first at {list(at)}",
        advice="the grid and the loops must cover every element",
        bad=count,
        total=left.numel(),
        worst_at=at,
    )


def unchanged(
    ran: Ran, inputs: tuple[Any, ...], names: list[str], mutates: tuple[str, ...]
) -> Verdict | None:
    """Whether each input that is not declared as mutated still holds its bytes."""
    for index, shipped in ran.inputs:
        if names[index] in mutates:
            continue
        now, before = Received(shipped).tensor(), inputs[index].cpu()
        same = _bits(now) == _bits(before)
        if bool(same.all()):
            continue
        return Verdict(
            word="changed its input",
            detail=f"{names[index]}, not declared as mutated",
            advice=f"write elsewhere, or declare mutates=({names[index]!r},)",
        )
    return None


def values(
    ran: Ran, expected: Expected, roundoff: float, limit: float | None
) -> tuple[Verdict, bool]:
    """Every element against the truth. Also says whether anything is wrong."""
    worst, worst_at, bad_total, total = 0.0, None, 0, 0
    first_bad: Verdict | None = None
    for index, shipped in enumerate(ran.outputs):
        out = Received(shipped).tensor()
        truth = expected.truth[index]
        share, detail = _shares(out, truth, expected.allowed(index, roundoff, limit))
        count = int((~(share <= 1.0)).sum())
        total += share.numel()
        bad_total += count
        if share.numel() == 0:
            continue
        flat = int(share.reshape(-1).argmax())
        top = float(share.reshape(-1)[flat])
        if not top <= worst:
            worst, worst_at = top, place(flat, tuple(out.shape))
        if count and first_bad is None:
            first_bad = _wrong(index, len(ran.outputs), out, truth, share, count, detail)
    if first_bad is None:
        return Verdict(
            word="right",
            worst=worst,
            worst_at=worst_at,
            eager_worst=expected.eager_worst,
            bad=0,
            total=total,
        ), False
    precision = _lower_precision(ran, expected, roundoff, bad_total, total)
    word, extra = ("lower precision", precision) if precision else ("wrong value", "")
    return msgspec.structs.replace(
        first_bad,
        word=word,
        detail=extra or first_bad.detail,
        advice=_advice(word),
        worst=worst,
        worst_at=worst_at,
        eager_worst=expected.eager_worst,
        bad=bad_total,
        total=total,
    ), True


def _advice(word: str) -> str:
    if word == "lower precision":
        return 'ask for IEEE arithmetic (Triton: input_precision="ieee"), or declare precision='
    return "compare the element named with the reference by hand, on the smallest case that fails"


def _shares(
    out: torch.Tensor, truth: torch.Tensor, allowed: torch.Tensor
) -> tuple[torch.Tensor, str]:
    """|error| / allowed for each element; inf where a NaN or an infinity is out of place."""
    if not (truth.is_floating_point() or truth.is_complex()):
        return torch.where(out.cpu() == truth.cpu(), 0.0, torch.inf), ""
    device, wide = truth.device, truth.dtype
    value = out.to(device).to(wide)
    rounded = truth.to(out.dtype).to(wide)  # overflows to inf where the output's dtype does
    share = (value - truth).abs() / allowed
    share = torch.where(share.isnan(), torch.inf, share)
    nan = truth.isnan()
    same = (value == rounded) | (value == truth) | (nan & value.isnan())
    share = torch.where(same, (share * 0).nan_to_num_(0.0, 0.0, 0.0), share)
    finite_error = (value - truth).abs() / allowed
    both = value.isfinite() & truth.isfinite()
    share = torch.where(both, finite_error, share)
    if truth.is_floating_point() and out.dtype.is_floating_point:
        most = torch.finfo(out.dtype).max
        edge = truth.isfinite() & value.isinf() & (value.sign() == truth.sign())
        share = torch.where(edge & (truth.abs() + allowed >= most), 0.0, share)
    lost = int((value.isnan() & ~nan).sum()), int((~value.isnan() & nan).sum())
    infinite = int((value.isinf() & truth.isfinite() & rounded.isfinite()).sum())
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (lost[0], "NaN where the reference has none"),
            (lost[1], "without the reference's NaN"),
            (infinite, "infinite where the reference is finite"),
        )
        if count
    ]
    return share, ", ".join(parts)


def _wrong(
    index: int,
    outputs: int,
    out: torch.Tensor,
    truth: torch.Tensor,
    share: torch.Tensor,
    count: int,
    special: str,
) -> Verdict:
    bad = ~(share <= 1.0)
    flat = bad.reshape(-1)
    worst = int(torch.where(flat, share.reshape(-1), -1.0).argmax())
    first = int(flat.nonzero()[0])
    shape = tuple(out.shape)
    name = f"output {index}: " if outputs > 1 else ""
    scope = (
        "every element" if count == share.numel() else f"{count:,} of {share.numel():,} elements"
    )
    got, want = out.reshape(-1)[worst].item(), truth.reshape(-1)[worst].item()
    at = list(place(worst, shape))
    detail = f"{name}{scope}, worst at {at}: {_number(got)}, expected {_number(want)}"
    if not special and not isinstance(got, (bool, complex)):
        size = float(truth.abs().max()) if truth.numel() else 0.0
        error = abs(float(got) - float(want))
        if size > 0 and error / size >= 0.01:
            detail += f" (off by {100 * error / size:.0f} % of the largest output)"
    if special:
        detail += f"; {special}"
    detail += f"; first at {list(place(first, shape))}"
    return Verdict(word="wrong value", detail=detail)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _lower_precision(ran: Ran, expected: Expected, roundoff: float, bad: int, total: int) -> str:
    """Names the precision class that explains errors all over the output, or is empty."""
    if bad < 0.05 * total or roundoff > 2.0**-24:
        return ""
    outs = [Received(s).tensor() for s in ran.outputs]
    for name in ("tf32", "bfloat16", "float16"):
        if name == "tf32":
            possible = expected.dots
        else:  # every value is one that the lower format has
            low = getattr(torch, name)
            possible = all(o.dtype == low or torch.equal(o, o.to(low).to(o.dtype)) for o in outs)
        if possible and all(
            bool((_shares(out, truth, _loose(expected, i, CLASSES[name]))[0] <= 1).all())
            for i, (out, truth) in enumerate(zip(outs, expected.truth))
        ):
            return f"{bad:,} of {total:,} elements: looks like {name}, declared float32"
    return ""


def _loose(expected: Expected, index: int, roundoff: float) -> torch.Tensor:
    """What one rounding of each input to a lower class explains: no growth with the length."""
    moved = expected.moved[index]
    if moved is None:
        return torch.zeros_like(expected.truth[index], dtype=torch.float64)
    return 4 * roundoff * (expected.truth[index].abs() + moved)


def same_bits(one: Shipped, two: Shipped) -> bool:
    """Whether two outputs agree bit for bit."""
    if one.shape != two.shape or one.dtype != two.dtype or one.kind != two.kind:
        return False
    if one.kind != "tensor":
        return True
    return torch.equal(_bits(Received(one).tensor()), _bits(Received(two).tensor()))


def _bits(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous().reshape(-1).view(torch.uint8)
