"""The contract on a GPU: the caller's stream, the tensors' device, capture in a CUDA graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..clock.graphs import capturing
from ..errors import NotRun
from ..faults import told
from .subject import Subject, Wrong, beyond, copies

SPIN_CYCLES = 200_000_000
"""About 0.1 s at 2 GHz: long enough for a launch on another stream to overtake."""


def _device(subject: Subject) -> torch.device:
    device = next(x.device for x in subject.inputs if isinstance(x, torch.Tensor))
    if device.type != "cuda":
        raise NotRun("its inputs are on the CPU: give them on a GPU")
    return device


def _others(subject: Subject) -> list[Any]:
    """Inputs with other values: rolled by one, and negated where they are floats."""
    return [_other(x) if isinstance(x, torch.Tensor) else x for x in subject.inputs]


def _other(x: torch.Tensor) -> torch.Tensor:
    moved = x.roll(1) if x.dim() else x.clone()
    return -moved if x.is_floating_point() else moved


def _fill(buffers: Sequence[Any], values: Sequence[Any]) -> None:
    for one, other in zip(buffers, values):
        if isinstance(one, torch.Tensor):
            one.copy_(other)


def _poison(outputs: Sequence[Any]) -> None:
    for y in outputs:
        y.fill_(torch.nan if y.is_floating_point() else 85)


def _differs(got: Sequence[Any], right: Sequence[Any], what: str) -> Wrong | None:
    for index, (one, truth) in enumerate(zip(got, right)):
        left = one.is_floating_point() and one.numel() and bool(one.isnan().all())
        if left and not bool(truth.isnan().all()):
            return Wrong("not written", f"{what}output {index} was left as it was")
        off = beyond(one, truth, truth)
        if off:
            return Wrong("wrong value", f"{what}output {index}: {off}")
    return None


def side_stream(subject: Subject) -> Wrong | None:
    """Work goes to the caller's stream: it sees inputs that this stream writes late."""
    device = _device(subject)
    late = _others(subject)
    right = subject.outputs(copies(late))
    buffers = copies(subject.inputs)
    subject.outputs(copies(buffers))  # whatever is compiled is compiled now
    torch.cuda.synchronize(device)
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SPIN_CYCLES)
        _fill(buffers, late)
        made = subject.outputs(buffers)
    stream.synchronize()
    torch.cuda.synchronize(device)
    found = _differs(made, right, "on a side stream: ")
    if found is None:
        return None
    return Wrong(
        "unfinished",
        f"{found.detail}; it did not wait for the stream that it was called on",
        "launch on torch.cuda.current_stream()",
    )


def second_device(subject: Subject) -> Wrong | None:
    """Tensors on a GPU that is not the current one."""
    device = _device(subject)
    if torch.cuda.device_count() < 2:
        raise NotRun("there is one GPU")
    there = f"cuda:{1 - (device.index or 0)}"
    moved = [x.to(there) if isinstance(x, torch.Tensor) else x for x in subject.inputs]
    right = subject.outputs(copies(subject.inputs))
    with torch.cuda.device(device):
        try:
            made = subject.outputs(copies(moved))
            torch.cuda.synchronize(there)
        except Exception as error:  # noqa: BLE001 - whatever an operator raises is its row
            return Wrong("not supported", f"on {there}: {told(error)}", "use a device guard")
    for index, y in enumerate(made):
        if str(y.device) != there:
            return Wrong("wrong device", f"output {index} is on {y.device}, inputs on {there}")
    return _differs([y.to(device) for y in made], right, f"on {there}: ")


def graph(subject: Subject) -> Wrong | None:
    """Captured, poisoned, given new inputs, replayed: nothing is missing then (G1 to G3)."""
    device = _device(subject)
    late = _others(subject)
    right = subject.outputs(copies(late))
    right_before = subject.outputs(copies(subject.inputs))
    buffers = copies(subject.inputs)
    stream = torch.cuda.Stream(device)
    with torch.cuda.device(device), torch.cuda.stream(stream):  # warm on the capture's own (G2)
        for _ in range(3):
            subject.outputs(copies(buffers))
    stream.synchronize()
    captured = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.device(device), capturing(captured, stream):
            made = subject.outputs(buffers)
    except Exception as error:  # noqa: BLE001 - whatever an operator raises is its row
        return Wrong("not supported", f"while capturing: {told(error)}", "no synchronising call")
    own = made[len(subject.mutated) :]
    for values, wanted, what in (
        (subject.inputs, right_before, "in the first replay: "),
        (late, right, "in a replay with new inputs: "),
    ):
        _poison(own)
        _fill(buffers, values)
        captured.replay()
        torch.cuda.synchronize(device)
        found = _differs(copies(made), wanted, what)  # copied: a later replay overwrites (G3)
        if found is not None:
            return found
    return None
