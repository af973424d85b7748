"""Of what a timing process says of a kernel: its Timing, or the reason why it gives no number."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import msgspec
import numpy as np

from ..types import Input, Machine, Memory, Roofs, Row, Share, Sustained, Timing
from . import caches, floor, plausible
from .noise import MUCH
from .protocol import Plan
from .statistics import interval, steadiness


@dataclass(frozen=True)
class Noise:
    """q, the noise floor: at some lengths, in seconds, by `assay selftest clock`."""

    points: tuple[tuple[float, float], ...]
    """Length and q, the shortest first."""

    def at(self, seconds: float) -> float:
        """q of a kernel of that length: on the line in log length, level beyond both ends."""
        lengths, floors = zip(*self.points)
        return float(np.interp(math.log(seconds), np.log(lengths), floors))


@dataclass(frozen=True)
class Known:
    """What is known of a machine before anything is timed on it."""

    machine: Machine
    roofs: Mapping[str, Roofs]
    """Ceilings by device."""
    noise: Mapping[str, Noise]
    """Of each device on which the clock was tried, what equal kernels differ by."""


def timing(said: dict[str, Any], row: Row, plan: Plan, schedule: str, known: Known) -> Timing:
    """Everything that is known of the samples of a row."""
    low, middle, high = interval(said["samples"])
    work, found = _work(row, plan), known.noise.get(row.device)
    reached, no_share = _share(work, middle, said["cache"], row.device, known.roofs)
    return Timing(
        samples=tuple(said["samples"]),
        rounds=tuple(said["rounds"]),
        calls=said["calls"],
        windows=said["windows"],
        method=said["method"],
        cache=said["cache"],
        schedule=schedule,
        median=middle,
        low=low,
        high=high,
        steady=steadiness(said["samples"]),
        ended=said["ended"],
        threads=plan.threads if row.device == "cpu" else None,
        null_seconds=said["null_seconds"],
        fixed_seconds=said["fixed_seconds"],
        warmup_seconds=said["warm_seconds"],
        warmup_calls=said["warm_calls"],
        first_call_seconds=said["first_seconds"],
        host_seconds=said["host_seconds"],
        wall_seconds=said["wall_seconds"],
        sync_seconds=said["sync_seconds"],
        memory=_maybe(said.get("memory"), Memory),
        sustained=_maybe(said.get("sustained"), Sustained),
        period_seconds=said.get("period_seconds"),
        no_period=said.get("no_period", ""),
        working_bytes=said["working_bytes"],
        cache_bytes=said["cache_bytes"],
        sets=said["sets"],
        inputs=tuple(msgspec.convert(each, Input) for each in said["inputs"]),
        clock_hz=_pair(said["clock_hz"]),
        watts=_pair(said["watts"]),
        celsius=_pair(said["celsius"]),
        hertz=tuple(said["hertz"]),
        held={name: tuple(at) for name, at in said["held"].items()},
        other_load=said["other_load"],
        noise=found.at(middle) if found and middle > 0 else None,
        copy_rate=said["copy_rate"],
        kernels=said.get("kernels"),
        kernel_seconds=said.get("kernel_seconds"),
        span_seconds=said.get("span_seconds"),
        event_seconds=said.get("event_seconds"),
        seed=plan.seed,
        notes=_notes(said),
        floor=floor.floor(
            work,
            known.machine.gpu(row.device),
            cold=said["cache"] in caches.COLD,
            copy_rate=said["copy_rate"],
            null_seconds=_null(said),
        ),
        share=reached,
        no_share=no_share,
    )


def refused(said: dict[str, Any], made: Timing) -> str:
    """Empty, or why these samples give no number."""
    return plausible.refuse(
        made.samples,
        made.median,
        null_seconds=made.null_seconds,
        late=said["late"],
        host_seconds=made.host_seconds,
        floor=made.floor,
        kernels=made.kernels,
        elsewhere=said.get("elsewhere", 0),
        fixed_seconds=made.fixed_seconds,
        span_seconds=made.span_seconds,
        kernel_seconds=made.kernel_seconds,
        uneven=said.get("uneven", ""),
        persisting=said["persisting"],
        held=made.held,
        clock_hz=made.clock_hz,
        event_seconds=made.event_seconds,
    )


def _maybe(value: Any, noun: Any) -> Any:
    return None if value is None else msgspec.convert(value, noun)


def _null(said: dict[str, Any]) -> float | None:
    """What nothing reads in the time of the samples; None where less than nothing is left of it."""
    if said["null_seconds"] is None:
        return None
    left = float(said["null_seconds"]) - float(said["fixed_seconds"] or 0.0)
    return left if left > 0 else None


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    return (float(values[0]), float(values[1])) if values else None


def _notes(said: dict[str, Any]) -> tuple[str, ...]:
    notes = []
    if said["retaken"]:
        notes.append(f"{said['retaken']} samples taken again: the launch was not hidden")
    if said.get("no_witness"):
        notes.append(f"no-cupti: {said['no_witness']}; what events add is still in the times")
    if said.get("uneven"):
        notes.append(said["uneven"])
    if said.get("no_nvml"):
        notes.append(f"clocks and power are not known: {said['no_nvml']}")
    notes += [f"held down: {reason}" for reason in said["throttled"]]
    if said["strangers"]:
        pids = ", ".join(map(str, said["strangers"]))
        notes.append(f"other processes used this GPU when sampling began: {pids}")
    if not said["still"]:
        notes.append("its times had not settled when the warm-up ended")
    if (said["other_load"] or 0.0) > MUCH:
        notes.append(f"other load took {100 * said['other_load']:.0f} % of its CPUs")
    return tuple(notes)


def _work(row: Row, plan: Plan) -> floor.Work:
    """What one call must do; what it writes is the size of its outputs."""
    written = sum(prod(spec.shape) * _item_bytes(spec.dtype) for spec in plan.specs)
    kind = floor.kind_of(row.precision, str(row.case.values.get("dtype", "")))
    return floor.Work(row.bytes, written, row.flops, kind)


def _item_bytes(dtype: str) -> int:
    """Of an element, by the number in torch's name of its dtype; `bool` has none, and one byte."""
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits else 1


NO_ROOFS = "no ceilings of {device} are known: `assay roofs --device {device}` measures them"


def _share(
    work: floor.Work, seconds: float, cache: str, device: str, known: Mapping[str, Roofs]
) -> tuple[Share | None, str]:
    """The share of a ceiling, and why there can be none."""
    roofs = known.get(device)
    if roofs is None:
        return None, NO_ROOFS.format(device=device)
    if roofs.doubtful:
        return None, f"ceiling doubtful: {roofs.doubtful}"
    return floor.share(work, seconds, cache, roofs), ""
