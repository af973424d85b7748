"""The candidate process: runs one variant, case by case, and ships what it left in memory.

It learns inputs and output shapes, never the truth. Messages out, for each task: {phase: build},
{phase: run}, then {ran: [...], ...} or {word, reason}. In: {go: true} before the next task.
"""

from __future__ import annotations

import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from .. import faults, ways
from ..build import Kernel, Specs, build, find_variant
from ..errors import AssayError, NotRun
from ..inputs import dtype_of, inputs_of
from ..op import Op, Variant
from ..processes.channel import Channel
from ..target import load_op
from ..types import Case
from .buffers import (
    POISONS,
    Poisoned,
    fence_like,
    fenced,
    guards,
    inside,
    is_dense,
    overlap,
    poisoned,
    ship,
)
from .protocol import Ran, Settings, Task

if TYPE_CHECKING:
    from ..simt import Watch

RUNS = 3
"""Runs of each task: two with different inputs and poisons, one that repeats the first."""


def main(channel: Channel, settings: dict, tasks: list[dict]) -> None:
    """Runs the tasks in order; the parent says when to go on, after it has read the bytes."""
    given = msgspec.convert(settings, Settings)
    torch.set_num_threads(given.threads)
    try:
        watch = ways.watching(given.judge, lambda text: channel.send(note=text))
        op = load_op(given.target, given.op)
        own = find_variant(op, given.variant)
        general = find_variant(op, given.variant, dynamic=True)
        _prepare(given, own, watch)
    except AssayError as error:
        channel.send(mistake=str(error))
        return
    for number, raw in enumerate(tasks):
        task = msgspec.convert(raw, Task)
        channel.send(phase="build", task=number)
        try:
            variant = general if task.case.zoo else own
            answer = _answer(channel, given, op, variant, task, watch)
        except AssayError as error:
            channel.send(mistake=str(error))
            return
        except BaseException as error:  # noqa: BLE001 - every fault of a kernel is its verdict
            traceback.print_exc()
            word, reason = faults.word_of(error)
            log = getattr(error, "log", "")
            answer = {"word": word, "reason": reason, "log": log, "last": _lost(word, given)}
            answer["uncheckable"] = getattr(error, "uncheckable", False)
        channel.send(**answer)
        if answer.get("last"):
            return
        channel.receive()


def _lost(word: str, given: Settings) -> bool:
    return given.judge.startswith("cuda") and faults.poisons_process(word)


def _prepare(given: Settings, variant: Variant, watch: Watch | None) -> None:
    way = ways.way(variant.way)
    if watch is not None and hasattr(way, "watch"):
        way.watch(watch)
    if given.judge in ("interpreter", "simulator"):
        way.limit(given.budget / RUNS if given.budget else float("inf"))
    if given.judge.startswith("cuda"):
        torch.cuda.set_device(given.judge)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False


def _answer(
    channel: Channel,
    given: Settings,
    op: Op,
    variant: Variant,
    task: Task,
    watch: Watch | None,
) -> dict[str, Any]:
    inputs = cached_inputs(op, task.case, given.seed)
    specs = [(spec.shape, dtype_of(spec.dtype)) for spec in task.specs]
    if given.judge in ("interpreter", "simulator"):
        dtypes = [x.dtype for x in inputs if isinstance(x, torch.Tensor)]
        refusal = ways.way(variant.way).refuses([*dtypes, *(d for _, d in specs)])
        if refusal:
            raise NotRun(refusal)
    kernel = build(
        op,
        variant,
        task.knobs,
        task.case,
        inputs,
        specs,
        given.device,
        given.arch,
        lambda text: channel.send(note=text),
        watch,
    )
    facts = {
        "build": msgspec.to_builtins(kernel.build),
        "counters": msgspec.to_builtins(kernel.counters),
        "touched": _touched(inputs, specs, op),
    }
    if not given.judge:
        return {**facts, "word": "not run", "reason": given.why}
    channel.send(phase="run")
    if watch is not None:
        watch.programs.clear()
    seeds = (given.seed, given.seed + 1, given.seed)
    assert len(seeds) == RUNS
    runs = []
    for number, seed in enumerate(seeds):
        folder = Path(given.scratch) / str(number)
        folder.mkdir(exist_ok=True)
        runs.append(_run(given, op, kernel, task.case, specs, seed, number, folder, watch))
    if watch is not None:
        facts["barriers"] = []
        if given.drop_barriers and not any(run.faults for run in runs):
            from .without import left_out

            again = partial(_run, given, op, kernel, task.case, specs, given.seed, 0)
            facts["barriers"] = msgspec.to_builtins(
                left_out(watch, runs[0], again, Path(given.scratch) / "dropped")
            )
    if variant.way == "compiled" and given.device == "cpu" and not task.case.zoo:
        facts["gpu_code"] = _gpu_code(channel, given, op, inputs)
    return {
        **facts,
        "arch": watch.arch if watch is not None else "",
        "ran": [msgspec.to_builtins(run) for run in runs],
    }


def _gpu_code(
    channel: Channel, given: Settings, op: Op, inputs: tuple[Any, ...]
) -> dict[str, Any] | None:
    from . import generated

    if not generated.applies():
        return None
    channel.send(phase="build")  # Inductor once more, for a GPU
    copies = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs)
    return generated.judged(op, copies, given.seed, Path(given.scratch) / "gpu")


def _touched(inputs: tuple[Any, ...], specs: Specs, op: Op) -> int:
    """Bytes of every input and every output once; a mutated input counts as both."""
    reads = sum(x.numel() * x.element_size() for x in inputs if isinstance(x, torch.Tensor))
    return reads + sum(torch.Size(shape).numel() * dtype.itemsize for shape, dtype in specs)


def _run(
    given: Settings,
    op: Op,
    kernel: Kernel,
    case: Case,
    specs: Specs,
    seed: int,
    number: int,
    folder: Path,
    watch: Watch | None,
) -> Ran:
    """One run on fresh buffers under one poison."""
    device = given.judge if given.judge.startswith("cuda") else "cpu"
    poison = POISONS[number % 2]
    contiguous = kernel.variant.layouts != "any"
    inputs = [fence_like(x, device, poison, contiguous) for x in cached_inputs(op, case, seed)]
    filled = specs[len(op.mutates) :]
    outputs = [
        fenced(shape, torch.empty(shape, device="meta").stride(), dtype, device, poison)
        for shape, dtype in (filled if kernel.variant.fills else ())
    ]
    placed = [t for t in [*inputs, *outputs] if isinstance(t, torch.Tensor)]
    intercept = kernel.variant.way != "compiled"
    if watch is not None:
        watch.clear()
        # The repetition goes through warps and blocks in another order.
        watch.order = seed | 1 if number == RUNS - 1 else 0
        _show(watch, op, kernel, inputs, outputs)
    with torch.no_grad(), poisoned(poison, intercept, watch) as mode:
        made = [plain(value) for value in kernel.run(outputs, list(inputs))]
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    exact = {_block(t) for t in placed}
    blocks = exact | {_block(t) for t in mode.fences}
    names = op.input_names(len(inputs))
    owned = [(x, name) for x, name in zip(inputs, names) if isinstance(x, torch.Tensor)]
    if kernel.variant.function is op.reference or kernel.variant.way == "compiled":
        owned = []  # a reference may return a view, such as x.t(): it says what, not where
    shipped = []
    for index, value in enumerate(made):
        owner = ""
        if is_dense(value) and index >= len(op.mutates):
            owner = next((name for known, name in owned if overlap(value, known)), "")
            owned.append((value, f"output {index}"))
        path = folder / f"output{index}"
        shipped.append(ship(value, path, blocks, owner, _block(value) in exact))
    inside = [
        (index, ship(x, folder / f"input{index}", blocks, exact=True))
        for index, x in enumerate(inputs)
        if isinstance(x, torch.Tensor)
    ]
    return Ran(
        seed=seed,
        poison=poison,
        outputs=tuple(shipped),
        inputs=tuple(inside),
        scratch=_scratch(mode, {_block(value) for value in made}),
        faults=tuple(watch.faults) if watch is not None else (),
    )


def _show(watch: Watch, op: Op, kernel: Kernel, inputs: list[Any], outputs: list[Any]) -> None:
    """Tells the watch whose memory is whose, and that nobody has written the outputs."""
    names = op.input_names(len(inputs))
    for value, name in zip(inputs, names):
        if isinstance(value, torch.Tensor):
            start, size = inside(value)
            watch.memory.add(start, size, name=name, read_only=name not in op.mutates, keep=value)
    for index, value in enumerate(outputs):
        start, size = inside(value)
        watch.memory.add(start, size, name=f"output {index}", written=False, keep=value)


def _scratch(mode: Poisoned, returned: set[int]) -> tuple[tuple[int, int], ...]:
    """What happened to the guards of tensors that were allocated and not returned."""
    found = []
    for value in mode.fences:
        if _block(value) in returned:
            continue
        raw = torch.empty(0, dtype=torch.uint8, device=value.device)
        before, after = guards(raw.set_(value.untyped_storage()), mode.poison)
        size = value.element_size()
        found.append((-(-before // size), -(-after // size)))
    return tuple(found)


_made: dict[tuple[str, int, int], tuple[Any, ...]] = {}


def cached_inputs(op: Op, case: Case, seed: int) -> tuple[Any, ...]:
    """The inputs, which the configurations of a case share; every run gets copies of them."""
    key = (case.label, case.seed, seed)
    if key not in _made:
        if any(known[:2] != key[:2] for known in _made):
            _made.clear()
        _made[key] = inputs_of(op, case, seed)
    return _made[key]


def _block(value: Any) -> int:
    return value.untyped_storage().data_ptr() if is_dense(value) else 0


def plain(value: Any) -> Any:
    """A NumPy array as the tensor over its memory; a parameter or a lazy view as its values."""
    if type(value).__module__ == "numpy" and hasattr(value, "dtype") and hasattr(value, "shape"):
        import numpy

        return torch.from_numpy(numpy.ascontiguousarray(value))
    if isinstance(value, torch.nn.Parameter):
        return value.detach()
    return value.resolve_conj().resolve_neg() if is_dense(value) else value
