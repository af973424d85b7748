"""The child behind `assay map`: one variant on one case, run twice on buffers of poison.

The first run is recorded: by the engine that runs compiled code, by the interpreter or simulator.
What two poisons left says what was written at all, also by code that nothing records.

Messages: {op, label, case, judge, launches, tensors, faults, ...}, the elements as `.npy` files in
`folder`; or {mistake: text}, {not_run: text, uncheckable: bool}.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from .. import single, ways
from ..errors import AssayError, BuildError, LaunchError, NotRun
from ..inputs import dtype_name
from ..op import way_of
from ..processes.channel import Channel
from ..simt import DEFAULT_ARCH
from ..simt.memory import Memory, Window
from ..simt.record import Recorded
from ..target import Target
from ..types import Scalar
from ..verdict.buffers import POISONS, Poisoned, fence_like, fenced, inside, is_dense, poisoned
from .elements import elements


def main(
    channel: Channel,
    target: dict,
    wanted: str,
    case: dict[str, Scalar],
    arch: str,
    stepped: bool,
    folder: str,
) -> None:
    """Sends one message."""
    try:
        given = msgspec.convert(target, Target), wanted, case, arch, stepped, Path(folder)
        channel.send(**_mapped(*given))
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, BuildError, LaunchError) as error:
        unable = bool(getattr(error, "uncheckable", False))
        channel.send(not_run=str(error), uncheckable=unable)


@dataclass(frozen=True)
class Made:
    """One run: the tensors of the call by name and role, and what was recorded."""

    tensors: list[tuple[str, str, torch.Tensor]]
    memory: Memory
    records: list[Recorded]
    faults: list[str]
    fences: list[torch.Tensor]


def _mapped(
    target: Target, wanted: str, case: dict[str, Scalar], arch: str, stepped: bool, folder: Path
) -> dict[str, Any]:
    module = ways.way(way_of(wanted))
    here = (ways.stepped if stepped else ways.here)(way_of(wanted), "cpu")
    if not here.judge:
        raise NotRun(f"{wanted}: {here.reason}")
    watch: Any = ways.watching(here.judge)
    if watch is not None and hasattr(module, "watch"):
        module.watch(watch)
    one = single.pick(target, wanted, case)
    single.unlimited(one.variant.way, here.judge)
    recorder = watch
    if here.judge in ("interpreter", "simulator"):
        from .recorder import recorder_of

        recorder = recorder_of(here.judge)
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", arch or ways.DEFAULT_ARCH, watch=watch)
    runs = [_run(placed, kernel, poison, recorder) for poison in POISONS]
    return {
        "op": one.op.name,
        "label": one.label,
        "case": one.case.label,
        "judge": (watch.arch or DEFAULT_ARCH) if watch is not None else here.judge,
        "launches": [[r.kernel, r.grid, r.block] for r in runs[0].records],
        "tensors": [_tensor(number, runs, folder) for number in range(len(runs[0].tensors))],
        "faults": runs[0].faults,
        "trace": [] if recorder is watch else recorder.trace(runs[0].tensors),
    }


def _run(placed: single.Placed, kernel: Any, poison: int, recorder: Any) -> Made:
    """One run on fresh buffers; the first is recorded."""
    op, variant = placed.single.op, placed.single.variant
    recorded = poison == POISONS[0]
    contiguous = variant.layouts != "any"
    given = [fence_like(x, "cpu", poison, contiguous) for x in placed.inputs]
    filled = placed.specs[len(op.mutates) :] if variant.fills else []
    strides = [torch.empty(s, device="meta").stride() for s, _ in filled]
    outputs = [
        fenced(shape, stride, dtype, "cpu", poison)
        for (shape, dtype), stride in zip(filled, strides)
    ]
    names = op.input_names(len(given))
    known = [(n, "input", x) for n, x in zip(names, given) if isinstance(x, torch.Tensor)]
    if recorder is not None:
        recorder.clear()
        recorder.record = recorded
        for name, _, value in [*known, *((f"output {i}", "", x) for i, x in enumerate(outputs))]:
            written = not name.startswith("output ")
            start, size = inside(value)
            recorder.memory.add(start, size, name=name, written=written, keep=value)
    with torch.no_grad(), poisoned(poison, variant.way != "compiled", recorder) as mode:
        made = [_as_tensor(value) for value in kernel.run(outputs, list(given))]
    found = [(f"output {i}", "output", x) for i, x in enumerate(made) if i >= len(op.mutates)]
    tensors = [entry for entry in found if is_dense(entry[2])]
    fences = [*outputs, *mode.fences]
    if recorder is None:  # what it reads is not known
        return Made(tensors, Memory(), [], [], fences)
    tensors = known + tensors
    tensors += _scratch(recorder.memory, mode, tensors)
    faults = [str(fault) for fault in recorder.faults]
    return Made(tensors, recorder.memory, list(recorder.records), faults, fences)


def _as_tensor(value: Any) -> Any:
    """The tensor over an array's memory; anything else as it is."""
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _scratch(
    memory: Memory, mode: Poisoned, tensors: list[tuple[str, str, torch.Tensor]]
) -> list[tuple[str, str, torch.Tensor]]:
    """What the function allocated for itself and its kernels could reach."""
    taken = {id(memory.find(x.data_ptr())) for _, _, x in tensors}
    found = [x for x in mode.fences if x.numel() and id(memory.find(x.data_ptr())) not in taken]
    return [(f"own buffer {i}", "own buffer", x) for i, x in enumerate(found)]


def _tensor(number: int, runs: list[Made], folder: Path) -> dict[str, Any]:
    """A tensor's facts; its elements go to files, one a launch."""
    name, role, value = runs[0].tensors[number]
    window = runs[0].memory.find(value.data_ptr())
    launches = []
    for index, record in enumerate(runs[0].records):
        made = _elements(value, window, record)
        if made is not None:
            np.save(folder / f"{number}-{index}.npy", made)
            launches.append(index)
    left = None if role == "input" else _left(name, runs)
    if left is not None:
        np.save(folder / f"{number}-left.npy", left)
    return {
        "name": name,
        "role": role,
        "dtype": dtype_name(value.dtype),
        "shape": list(value.shape),
        "launches": launches,
        "left": left is not None,
    }


def _elements(value: torch.Tensor, window: Window | None, record: Recorded) -> Any:
    cells = record.cells(window) if window is not None else None
    if cells is None:
        return None
    size = value.element_size()
    assert window is not None
    return elements(
        cells,
        record.shift,
        value.data_ptr() - window.start,
        value.shape,
        [step * size for step in value.stride()],
        size,
        in_turn=record.in_turn,
    )


def _left(name: str, runs: list[Made]) -> Any:
    """Where both runs left their poison; None where nobody knows what was there before."""
    holding = []
    for run, poison in zip(runs, POISONS):
        value = next((x for known, _, x in run.tensors if known == name), None)
        blocks = {x.untyped_storage().data_ptr() for x in run.fences}
        if value is None or value.untyped_storage().data_ptr() not in blocks:
            return None
        holding.append(_holds(value, poison))
    return holding[0] & holding[1]


def _holds(value: torch.Tensor, poison: int) -> Any:
    """For each element, whether all its bytes hold the poison."""
    raw = value.contiguous().reshape(-1).view(torch.uint8).reshape(-1, value.element_size())
    return (raw == poison).all(-1).reshape(value.shape).numpy()
