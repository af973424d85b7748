"""The close-up process: one variant on one small case, with everything that people can look at.

Messages out: {inputs, ...} before the build, {kernels, targets} after it, {outputs, ...} after the
run; instead of any of them {word, reason, log} for the kernel's fault or {mistake} for the user's.
"""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec
import torch

from . import cache, faults, single, ways
from .build import Kernel
from .errors import AssayError, NotRun
from .inputs import dtype_name, inputs_of
from .processes.channel import Channel
from .target import Target
from .types import Scalar
from .verdict.budget import arithmetic, expect
from .ways import targets

SHOWN = 8
"""Values of each tensor that are shown, and lines around the first wrong one."""


def main(
    channel: Channel,
    target: dict,
    wanted: str,
    case: dict[str, Scalar],
    device: str,
    arch: str,
    flags: list[str],
) -> None:
    """Sends the three messages in order, as far as it comes."""
    try:
        one = single.pick(msgspec.convert(target, Target), wanted, case)
        found = ways.stepped(one.variant.way, device)
        watch = ways.watching(found.judge)
        single.unlimited(one.variant.way, found.judge)
        placed = single.place(one, found.device)
        names = one.op.input_names(len(placed.inputs))
        channel.send(
            op=one.op.name,
            label=one.label,
            way=one.variant.way,
            case=one.case.label,
            inputs=[value(n, x) for n, x in zip(names, placed.inputs)],
        )
        _refuse(placed, found.judge)
        kernel = single.built(placed, device, arch, tuple(flags), watch)
        channel.send(
            kernels=msgspec.to_builtins(kernel.counters.kernels if kernel.counters else ()),
            targets=_targets(kernel, found.judge),
        )
        outputs = single.run(placed, kernel) if found.judge else []
        _flush()
        seen = [str(f) for f in watch.faults] if watch else []
        channel.send(
            outputs=_compared(placed, outputs), judge=found.judge, why=found.reason, faults=seen
        )
    except AssayError as error:
        channel.send(mistake=str(error))
    except BaseException as error:  # noqa: BLE001 - every fault of a kernel is shown
        word, reason = faults.word_of(error)
        if word == "crashed":
            traceback.print_exc()
        _flush()
        channel.send(word=word, reason=reason, log=getattr(error, "log", ""))


def _refuse(placed: single.Placed, judge: str) -> None:
    """Raises NotRun for dtypes that the interpreter gets wrong."""
    if judge not in ("interpreter", "simulator"):
        return
    dtypes = [x.dtype for x in placed.inputs if isinstance(x, torch.Tensor)]
    way = ways.way(placed.single.variant.way)
    if refusal := way.refuses([*dtypes, *(dtype for _, dtype in placed.specs)]):
        raise NotRun(refusal)


def _targets(kernel: Kernel, judge: str) -> dict[str, Any]:
    """What a `cuda` build holds; on a GPU also what loading either of it takes."""
    place = cache.place_of(kernel.build.key) if kernel.build.key else Path()
    if not (place / "kernel.cubin").is_file():
        return {}
    cubin, ptx = (place / "kernel.cubin").read_bytes(), (place / "kernel.ptx").read_text()
    found = msgspec.to_builtins(targets.embedded(cubin, ptx))
    if judge.startswith("cuda"):
        lowered = msgspec.json.decode((place / "facts.json").read_bytes())["lowered"]
        found["load"] = targets.load_seconds(cubin, ptx, next(iter(lowered.values())))
    return {**found, "files": str(place)}


def _flush() -> None:
    """What was printed reaches the log, also by printf in C or on the device."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)


def value(name: str, given: Any) -> dict[str, Any]:
    """An input or output as it is shown: name, kind and first values."""
    if not isinstance(given, torch.Tensor):
        return {"name": name, "kind": type(given).__name__, "values": [str(given)]}
    flat = given.reshape(-1)[:SHOWN].tolist()
    kind = f"{dtype_name(given.dtype)} {tuple(given.shape)}"
    more = ["..."] if given.numel() > SHOWN else []
    return {"name": name, "kind": kind, "values": [*map(number, flat), *more]}


def number(given: Any) -> str:
    """A number as it is shown."""
    return f"{given:.6g}" if isinstance(given, (float, complex)) else str(given)


def _compared(placed: single.Placed, outputs: list[Any]) -> list[dict[str, Any]]:
    """Each output beside the truth in float64; only the truth where nothing was run.

    The truth is made last: no memory that the kernel was given can hold it.
    """
    one = placed.single
    inputs = inputs_of(one.op, one.case, 0)
    expected = expect(one.op, inputs, placed.specs)
    dtypes = [x.dtype for x in inputs if isinstance(x, torch.Tensor)]
    roundoff = arithmetic(dtypes, one.variant.precision)
    found = []
    for index, truth in enumerate(expected.truth):
        allowed = expected.allowed(index, roundoff, one.op.limit)
        out = torch.as_tensor(outputs[index]).cpu() if index < len(outputs) else None
        found.append(_output(index, placed.specs[index], out, truth, allowed))
    return found


def _output(
    index: int, spec: Any, out: torch.Tensor | None, truth: torch.Tensor, allowed: torch.Tensor
) -> dict[str, Any]:
    shape, dtype = tuple(spec[0]), spec[1]
    kind = f"{dtype_name(dtype)} {shape}"
    made: dict[str, Any] = {"name": f"output {index}", "kind": kind, "total": truth.numel()}
    made["bad"] = None
    if out is not None and (tuple(out.shape) != shape or out.dtype != dtype):
        is_ = f"{dtype_name(out.dtype)} {tuple(out.shape)}"
        return {**made, "form": f"it is {is_}, expected {kind}", "rows": []}
    wrong = torch.zeros(shape, dtype=torch.bool)
    if out is not None:
        wrong = ~right(out, truth, allowed)
        made["bad"] = int(wrong.sum())
    flat = wrong.reshape(-1)
    first = int(flat.nonzero()[0]) if bool(flat.any()) else None
    start = 0 if first is None or first < SHOWN else first - SHOWN // 2
    near = range(start, min(start + SHOWN, truth.numel()))
    shown = [*range(min(SHOWN, start, truth.numel())), *near]
    at = [[int(i) for i in torch.unravel_index(torch.tensor(n), shape)] for n in shown]
    made["first"] = at[shown.index(first)] if first is not None else None
    got = None if out is None else out.reshape(-1)
    lines = zip(shown, at, truth.reshape(-1)[shown], allowed.reshape(-1)[shown])
    made["rows"] = [
        {
            "at": str(spot),
            "output": "" if got is None else number(got[n].item()),
            "expected": number(want.item()),
            "difference": "" if got is None else number(_off(got[n], want)),
            "allowed": f"{most.item():.2g}",
            "wrong": bool(flat[n]),
        }
        for n, spot, want, most in lines
    ]
    return made


def right(out: torch.Tensor, truth: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """For each element, whether it is what it must be: the same, or within what is allowed."""
    value, rounded = out.to(truth.dtype), truth.to(out.dtype).to(truth.dtype)
    same = (value == truth) | (value == rounded) | (value.isnan() & truth.isnan())
    return same | ((value - truth).abs() <= allowed)


def _off(got: torch.Tensor, want: torch.Tensor) -> Any:
    if want.dtype is torch.bool:
        return int(got) - int(want)
    return (got.to(want.dtype) - want).item()
