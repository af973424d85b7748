"""Whether what a candidate shipped can be believed, came in time, and comes out the same again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..errors import OpError
from ..inputs import dtype_of
from ..types import Verdict
from .buffers import INTEGERS, span
from .late import NOT_WAITING
from .protocol import Ran, Shipped
from .shipped import Received


def unsound(runs: list[Ran], inputs: tuple[Any, ...]) -> Verdict | None:
    """Files that do not hold what was said of them: someone else wrote them, or the message.

    Asked before anything else reads a file, since a file cut short would end its reader.
    """
    tensors = {i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
    for run in runs:
        named = [(f"output {i}", s) for i, s in enumerate(run.outputs) if s.kind == "tensor"]
        named += [(f"input {i}", s) for i, s in run.inputs]
        for name, shipped in named:
            why = _unlike_its_file(shipped)
            if why:
                return _forged(f"{name}: {why}")
        if len(runs) > 1 and {i for i, _ in run.inputs} != tensors:
            return _forged("it does not say what became of each input")
    return None


def _unlike_its_file(shipped: Shipped) -> str:
    """Why the bytes can't be those of such a tensor, or empty."""
    try:
        size = dtype_of(shipped.dtype).itemsize
    except OpError as error:
        return str(error)
    if len(shipped.shape) != len(shipped.stride) or min((*shipped.shape, *shipped.stride, 0)) < 0:
        return f"shape {shipped.shape} with strides {shipped.stride}"
    if not Path(shipped.path).is_file():
        return "its file is not there"
    held = Path(shipped.path).stat().st_size
    wanted = shipped.offset + span(shipped.shape, shipped.stride) * size
    if shipped.offset < 0 or held < wanted:
        return f"its file holds {held:,} bytes, and {wanted:,} were said"
    return ""


def _forged(why: str) -> Verdict:
    return Verdict(
        word="tampered",
        detail=f"what its process shipped: {why}",
        advice="leave the files and the messages of the process that runs the kernel alone",
    )


def unfinished(runs: list[Ran]) -> Verdict | None:
    """Work that was still going on when a call returned."""
    late = next((run.late for run in runs if run.late), "")
    return _unfinished(late) if late else None


def not_waiting(run: Ran) -> Verdict | None:
    """What explains a wrong answer of a run behind a busy stream, if an idle GPU gave another."""
    return _unfinished(NOT_WAITING) if run.unlike_idle else None


def _unfinished(detail: str) -> Verdict:
    return Verdict(
        word="unfinished",
        detail=detail,
        advice="join threads before you return; launch on torch.cuda.current_stream(), or make "
        "each stream wait for the other, before and after",
    )


def kept(runs: list[Ran]) -> Verdict | None:
    """An output in the memory of an earlier one, whose owner may still read it."""
    for run in runs:
        for index, out in enumerate(run.outputs):
            if out.kept:
                return Verdict(
                    word="shares memory",
                    detail=f"output {index} lies in memory kept from an earlier call",
                    advice="allocate every output anew; keep only what is not returned",
                )
    return None


def spread(runs: list[Ran]) -> str:
    """How far the first and the last run, which had the same inputs, differ."""
    parts = []
    for index, (one, two) in enumerate(zip(runs[0].outputs, runs[-1].outputs)):
        count, total, size = _difference(Received(one).tensor(), Received(two).tensor())
        if count:
            name = f" of output {index}" if len(runs[0].outputs) > 1 else ""
            parts.append(f"{count:,} of {total:,} elements{name}{size}")
    said = f"two runs on the same inputs differ in {' and '.join(parts)}"
    last = runs[-1]
    if last.repeats > 2:
        said += f"; {last.different} different results in {last.repeats} runs"
    return said


def _difference(one: torch.Tensor, two: torch.Tensor) -> tuple[int, int, str]:
    """Elements that differ in some bit, all elements, and by how much at most."""
    total = one.numel()
    if one.is_complex():
        one, two = torch.view_as_real(one), torch.view_as_real(two)
    dtype = one.dtype
    whole = INTEGERS[dtype.itemsize]
    a, b = (t.contiguous().view(whole).long() for t in (one, two))
    unlike = (a != b) if total == one.numel() else (a != b).any(-1)
    if not bool(unlike.any()):
        return 0, total, ""
    if not dtype.is_floating_point:
        return int(unlike.sum()), total, f", by at most {int((a - b).abs().max()):,}"
    if bool(one.isnan().any()) or bool(two.isnan().any()):
        return int(unlike.sum()), total, ", some of them NaN"
    steps = int((_rank(a, dtype) - _rank(b, dtype)).abs().max())
    name = str(dtype).removeprefix("torch.")
    step = "1 step" if steps == 1 else f"{steps:,} steps"
    return int(unlike.sum()), total, f", by at most {step} of {name}"


def _rank(bits: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Neighbouring numbers of a format as neighbouring integers, -0 beside 0."""
    if dtype.itemsize == 1:  # read as unsigned
        return torch.where(bits >= 128, 127 - bits, bits)
    least = -(1 << (8 * dtype.itemsize - 1))
    return torch.where(bits < 0, least - bits, bits)
