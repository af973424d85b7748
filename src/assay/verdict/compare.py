"""Bytes from the candidate against the truth: the first thing wrong, named with its place."""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from ..inputs import dtype_name, dtype_of
from ..types import Verdict
from .budget import Expected
from .buffers import outside
from .chunks import chunk_of, largest_share, root_mean, same_bytes
from .protocol import Ran, Shipped
from .shipped import Received


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
                advice="return the output, or declare a function that fills it with @op.launcher"
                if out.kind == "NoneType"
                else "return a torch.Tensor that holds its values",
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


def memory(ran: Ran, names: list[str]) -> Verdict | None:
    """Guards and aliases of one run."""
    tensors = [(f"output {i}", s) for i, s in enumerate(ran.outputs)]
    tensors += [(names[i], s) for i, s in ran.inputs]
    for name, shipped in tensors:
        received = Received(shipped)
        changed = received.outside(ran.poison), received.gaps_written(ran.poison)
        size = dtype_of(shipped.dtype).itemsize
        before, after, between = (-(-n // size) for n in (*changed[0], changed[1]))
        if before or after or between:
            return _outside(name, before, after, between)
    for before, after in ran.scratch:
        if before or after:
            return _outside("scratch", before, after, 0)
    for index, out in enumerate(ran.outputs):
        if out.shares:
            return Verdict(
                word="shares memory",
                detail=f"output {index} lies in the memory of {out.shares}",
                advice="allocate it, or declare the input with mutates=",
            )
    return None


def poison_left(first: Ran, second: Ran) -> Verdict | None:
    """Elements that hold poison in both runs: their own, or what lies outside of a tensor.

    Asked only when values are wrong, for a byte of poison can be a right answer.
    """
    for index, (one, two) in enumerate(zip(first.outputs, second.outputs)):
        found = _holding(index, one, two, first.poison, second.poison, UNWRITTEN)
        found = found or _holding(
            index, one, two, outside(first.poison), outside(second.poison), FROM_OUTSIDE
        )
        if found:
            return found
    return None


UNWRITTEN = "not written", "the grid and the loops must cover every element"
FROM_OUTSIDE = "read outside", "mask the load: only indices below the size may be read"


def _outside(name: str, before: int, after: int, between: int) -> Verdict:
    places = (before, "before the start"), (after, "after the end"), (between, "between the values")
    found = [f"{n:,} value{'s' if n > 1 else ''} {where}" for n, where in places if n]
    return Verdict(
        word="wrote outside",
        detail=f"{' and '.join(found)} of {name}",
        advice="mask the store: only indices below the size may be written",
    )


def _holding(
    index: int, one: Shipped, two: Shipped, first: int, second: int, fault: tuple[str, str]
) -> Verdict | None:
    word, advice = fault
    if one.shape != two.shape or (word == "not written" and not (one.fenced and two.fenced)):
        return None
    left = Received(one).holds(first) & Received(two).holds(second)
    count = int(left.sum())
    if not count:
        return None
    at = place(int(left.reshape(-1).nonzero()[0]), one.shape)
    return Verdict(
        word=word,
        detail=f"{count:,} of {left.numel():,} elements of output {index}"
        f"{' hold what lies outside of a tensor' if word == 'read outside' else ''}"
        f", first at {list(at)}",
        advice=advice,
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
        if same_values(now, before):
            continue
        return Verdict(
            word="changed its input",
            detail=f"{names[index]}, not declared as mutated",
            advice=f"write elsewhere, or declare mutates=({names[index]!r},)",
        )
    return None


def received(ran: Ran) -> list[torch.Tensor]:
    """The outputs of a run."""
    return [Received(shipped).tensor() for shipped in ran.outputs]


def values(
    outs: list[torch.Tensor],
    expected: Expected,
    roundoff: float,
    limit: float | None,
    inputs: dict[str, Any] | None = None,
) -> tuple[Verdict, bool]:
    """Every element against the truth. Also says whether anything is wrong.

    inputs: by name; what they hold where the worst element is, if each output depends on that.
    """
    allowed = [expected.allowed(i, roundoff, limit) for i in range(len(outs))]
    total = sum(out.numel() for out in outs)
    quick = [_quick(out, t, a) for out, t, a in zip(outs, expected.truth, allowed)]
    worst_of = max(range(len(outs)), key=lambda i: quick[i][0], default=0)
    worst, flat, _ = quick[worst_of] if quick else (0.0, 0, 0.0)
    common = {"eager_worst": expected.eager_worst, "total": total}
    if all(share <= 1.0 for share, _, _ in quick):
        common |= _accuracy(quick, outs, expected, roundoff, limit)
        at = place(flat, tuple(outs[worst_of].shape)) if outs and outs[worst_of].numel() else None
        return Verdict(word="right", worst=worst, worst_at=at, bad=0, **common), False
    return _explained(outs, expected, allowed, inputs or {}, common), True


def _accuracy(
    quick: list[tuple[float, int, float]],
    outs: list[torch.Tensor],
    expected: Expected,
    roundoff: float,
    limit: float | None,
) -> dict[str, float | None]:
    """How accurate right answers are on the whole, beside eager's where both have one scale."""
    kept = [i for i, moved in enumerate(expected.moved) if moved is not None]
    rms = root_mean([quick[i][2] for i in kept], [outs[i] for i in kept])
    same = limit is None and roundoff == expected.roundoff
    return {"rms": rms, "eager_rms": expected.eager_rms if same and rms is not None else None}


def _quick(
    out: torch.Tensor, truth: torch.Tensor, allowed: torch.Tensor
) -> tuple[float, int, float]:
    """Largest share of the allowance, where, and the sum of squares."""
    if not out.numel():
        return 0.0, 0, 0.0
    if truth.is_floating_point():
        worst, at, squares = largest_share(out, truth, allowed)
        if worst <= 1.0:
            return worst, at, squares
    share, _ = shares(out, truth, allowed)
    flat = share.reshape(-1)
    at = int(flat.argmax())
    return float(flat[at]), at, float(flat.square().sum())


def within(out: torch.Tensor, truth: torch.Tensor, allowed: torch.Tensor) -> bool:
    """Whether every element is within its allowance, NaN and infinities in their places.

    Cheaper than `values` on what is wrong: it ends with the first chunk that is.
    """
    if out.shape != truth.shape:
        return False
    flats = [t.to(truth.device).reshape(-1) for t in (out, truth, allowed)]
    for start in range(0, flats[0].numel(), step := chunk_of(truth)):
        mine, right, most = (t[start : start + step] for t in flats)
        if truth.is_floating_point():
            share = torch.sub(mine, right).abs().div_(most)
            if float(share.max()) <= 1.0:
                continue
        if not bool((shares(mine, right, most)[0] <= 1.0).all()):
            return False
    return True


def _explained(
    outs: list[torch.Tensor],
    expected: Expected,
    allowed: list[torch.Tensor],
    inputs: dict[str, Any],
    common: dict[str, Any],
) -> Verdict:
    """The verdict on outputs of which something is wrong."""
    found_shares = [shares(out, t, a) for out, t, a in zip(outs, expected.truth, allowed)]
    counts = [int((~(share <= 1.0)).sum()) for share, _ in found_shares]
    index = next(i for i, count in enumerate(counts) if count)
    share, special = found_shares[index]
    there = inputs if expected.terms == 1 and not expected.dots else {}
    found = _wrong(index, len(outs), outs[index], expected.truth[index], share, special, there)
    return msgspec.structs.replace(found, bad=sum(counts), **common)


ADVICE = "compare the element named with the reference by hand, on the smallest case that fails"


def shares(
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
    share = torch.where(both, finite_error.nan_to_num(0.0, torch.inf), share)  # 0/0: exact
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
    special: str,
    inputs: dict[str, Any],
) -> Verdict:
    flat = ~(share <= 1.0).reshape(-1)
    count = int(flat.sum())
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
            percent = 100 * error / size
            said = f"{percent:.0f}" if percent < 1e4 else f"{percent:.2g}"
            detail += f" (off by {said} % of the largest output)"
    detail += _there(inputs, shape, worst)
    if special:
        detail += f"; {special}"
    detail += f"; first at {list(place(first, shape))}"
    return Verdict(
        word="wrong value",
        detail=detail,
        advice=ADVICE,
        worst=float(share.reshape(-1)[worst]),
        worst_at=place(worst, shape),
    )


def _there(inputs: dict[str, Any], shape: tuple[int, ...], flat: int) -> str:
    """`; there x = 11`, of each input that has the output's shape."""
    said = [
        f"{name} = {_number(value.reshape(-1)[flat].item())}"
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and tuple(value.shape) == shape
    ]
    return f"; there {', '.join(said)}" if said else ""


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def same_bits(one: Shipped, two: Shipped) -> bool:
    """Whether two outputs agree bit for bit."""
    if one.shape != two.shape or one.dtype != two.dtype or one.kind != two.kind:
        return False
    if one.kind != "tensor":
        return True
    return same_bytes(_bits(Received(one).tensor()), _bits(Received(two).tensor()))


def same_values(one: Any, other: Any) -> bool:
    """Whether two inputs are equal, bit for bit where they are tensors."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return same_bytes(_bits(one.cpu()), _bits(other.cpu()))
    return bool(one == other)


def _bits(value: torch.Tensor) -> torch.Tensor:
    flat = value.contiguous().reshape(-1)
    # One element counts as contiguous whatever its stride, and `view` wants a 1.
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)
