"""The child that records calls of one variant with torch.profiler, on a schedule, as a trace.

wait steps are not watched, warmup steps are watched and thrown away (the first ones of a process
may come out empty), active steps are kept. Each step is one call, in a range named RANGE.

Messages: {op, label, case, judge}, or {mistake | not_run: text}; the trace lies in `to`.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
import torch

from ... import single, ways
from ...errors import AssayError, BuildError, LaunchError, NotRun
from ...op import way_of
from ...processes.channel import Channel
from ...target import Target
from ...types import Scalar
from . import RANGE


def main(
    channel: Channel,
    target: dict,
    wanted: str,
    case: dict[str, Scalar],
    device: str,
    steps: list[int],
    stacks: bool,
    to: str,
) -> None:
    """Sends one message. steps: wait, warmup, active."""
    try:
        found = ways.here(way_of(wanted), device)
        if not found.judge.startswith(("cpu", "cuda")):
            raise NotRun(
                f"{wanted}: {found.reason or 'it can not run here'}; a profile of code that is "
                "emulated would say nothing (assay explain counts what it does)"
            )
        os.environ.update(found.env)
        aim = msgspec.convert(target, Target)
        channel.send(**_recorded(aim, wanted, case, found, steps, to, stacks))
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, BuildError, LaunchError) as error:
        channel.send(not_run=str(error))


def _recorded(
    target: Target,
    wanted: str,
    case: dict[str, Scalar],
    found: ways.Here,
    steps: list[int],
    to: str,
    stacks: bool,
) -> dict[str, Any]:
    on_gpu = found.judge.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(found.judge)
    one = single.pick(target, wanted, case)
    placed = single.place(one, found.device)
    kernel = single.built(placed, found.judge, _arch(found.judge))
    single.run(placed, kernel)  # compiling and loading are no part of a call
    record(lambda: kernel.run(placed.outputs, list(placed.inputs)), to, steps, on_gpu, stacks)
    return {"op": one.op.name, "label": one.label, "case": one.case.label, "judge": found.judge}


def record(call: Any, to: str, steps: list[int], on_gpu: bool, stacks: bool = False) -> None:
    """Writes a Chrome trace of the active steps of `call`."""
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    wait, warmup, active = steps
    plan = schedule(wait=wait, warmup=warmup, active=active, repeat=1)
    total = wait + warmup + active
    with (
        torch.no_grad(),
        profile(
            activities=activities,
            schedule=plan,
            on_trace_ready=lambda made: made.export_chrome_trace(to),
            with_stack=stacks,
            profile_memory=True,
        ) as profiler,
    ):
        for number in range(total):
            with record_function(RANGE):
                call()
            if on_gpu and number == total - 1:
                torch.cuda.synchronize()  # what is queued belongs to the steps that were watched
            profiler.step()


def _arch(judge: str) -> str:
    if not judge.startswith("cuda"):
        return ways.DEFAULT_ARCH
    major, minor = torch.cuda.get_device_capability(judge)
    return f"sm_{major}{minor}"
