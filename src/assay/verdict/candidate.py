"""The candidate process: runs one variant, case by case, and ships what it left in memory.

It learns inputs and output shapes, never the truth. Messages out, for each task: {phase: build},
{phase: run}, then {ran: [...], ...} or {word, reason}. In: {go: true} before the next task.
"""

from __future__ import annotations

import math
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from .. import faults, ways
from ..build import Kernel, Specs, build, find_variant
from ..errors import AssayError, NotRun
from ..inputs import dtype_of
from ..op import Op, Variant
from ..processes.channel import Channel
from ..target import load_op
from .buffers import Poisoned
from .protocol import Settings, Task, runs_of
from .room import alone, tidy
from .run import Runner, cached_inputs
from .tamper import Taken, Tampered, taken

if TYPE_CHECKING:
    from ..simt import Watch


def main(channel: Channel, settings: dict, tasks: list[dict]) -> None:
    """Runs the tasks in order; the parent says when to go on, after it has read the bytes."""
    noted, at_import = taken(), ""
    noted.allow(Poisoned)
    given = msgspec.convert(settings, Settings)
    torch.set_num_threads(given.threads)
    try:
        watch = ways.watching(given.judge, lambda text: channel.send(note=text))
        if watch is not None:
            watch.phase = lambda name: channel.send(phase=name)
        op = load_op(given.target, given.op)
        at_import = noted.changed()
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
            if at_import:
                raise Tampered(f"{at_import}, when its file was imported")
            variant = general if task.case.zoo else own
            answer = _answer(channel, given, op, variant, task, watch, noted)
        except AssayError as error:
            channel.send(mistake=str(error))
            return
        except Tampered as error:
            answer = {"word": "tampered", "reason": str(error), "last": not at_import}
        except BaseException as error:  # noqa: BLE001 - every fault of a kernel is its verdict
            traceback.print_exc()
            word, reason = faults.word_of(error)
            log = getattr(error, "log", "")
            answer = {"word": word, "reason": reason, "log": log, "last": _lost(word, given)}
            answer["uncheckable"] = getattr(error, "uncheckable", False)
        channel.send(**answer)
        if answer.get("last"):
            return
        tidy(given.judge)
        channel.receive()


def _lost(word: str, given: Settings) -> bool:
    return given.judge.startswith("cuda") and faults.poisons_process(word)


def _prepare(given: Settings, variant: Variant, watch: Watch | None) -> None:
    way = ways.way(variant.way)
    if watch is not None and hasattr(way, "watch"):
        way.watch(watch)
    if given.judge in ("interpreter", "simulator"):
        way.limit(given.budget / len(runs_of(0)) if given.budget else float("inf"))
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
    noted: Taken,
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
    if variant.way == "compiled":
        _compile(kernel, inputs, given.judge)
    runner = Runner(given, op, kernel, task.case, task, watch, noted, Path(given.scratch))
    with alone(inputs, given.judge, variant.layouts != "any"):
        channel.send(phase="run")
        if watch is not None:
            watch.programs.clear()
        noted.check()
        runs = runner.runs()
    if watch is not None:
        facts["barriers"] = []
        if given.drop_barriers and not any(run.faults for run in runs):
            from .without import left_out

            facts["barriers"] = msgspec.to_builtins(
                left_out(watch, runs[0], runner.run, Path(given.scratch) / "dropped")
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


def _compile(kernel: Kernel, inputs: tuple[Any, ...], device: str) -> None:
    """Calls it once, so that compiling is not taken for running."""
    copies = [x.to(device, copy=True) if isinstance(x, torch.Tensor) else x for x in inputs]
    with torch.no_grad():
        kernel.run([], copies)


def _touched(inputs: tuple[Any, ...], specs: Specs, op: Op) -> int:
    """Bytes of every input and every output once; a mutated input counts as both."""
    reads = sum(_held(x) * x.element_size() for x in inputs if isinstance(x, torch.Tensor))
    return reads + sum(torch.Size(shape).numel() * dtype.itemsize for shape, dtype in specs)


def _held(x: torch.Tensor) -> int:
    """Elements that lie in memory: one that is expanded along a dimension lies there once."""
    return math.prod(size for size, step in zip(x.shape, x.stride()) if step) if x.numel() else 0
