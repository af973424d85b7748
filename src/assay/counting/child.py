"""The child behind `assay count`: one variant on one case, run on the CPU and counted.

Messages: {kernels: [names], arch, op, label, case, counts, faults}, or {mistake | not_run: text}.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import torch

from .. import single, ways
from ..errors import AssayError, BuildError, LaunchError, NotRun
from ..op import way_of
from ..processes.channel import Channel
from ..simt import DEFAULT_ARCH, Watch
from ..simt.joining import joined
from ..target import Target
from ..types import Scalar


def main(
    channel: Channel,
    target: dict,
    wanted: str,
    case: dict[str, Scalar],
    arch: str,
    join: bool,
) -> None:
    """Sends one message. join: accesses of a thread side by side are counted as one."""
    try:
        channel.send(**_counted(msgspec.convert(target, Target), wanted, case, arch, join))
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, BuildError, LaunchError) as error:
        channel.send(not_run=str(error))


def _counted(
    target: Target, wanted: str, case: dict[str, Scalar], arch: str, join: bool
) -> dict[str, Any]:
    watch = Watch()
    way = ways.way(way_of(wanted))
    if hasattr(way, "watch"):
        way.watch(watch)
    one = single.pick(target, wanted, case)
    found = ways.here(one.variant.way, "cpu")
    if found.judge != "simt":
        raise NotRun(
            f"{one.label}: {found.reason or 'it is no GPU kernel, so nothing of it can be counted'}"
        )
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", arch or ways.DEFAULT_ARCH, watch=watch)
    with torch.no_grad():
        kernel.run(placed.outputs, list(placed.inputs))
    if not watch.tallies:
        raise NotRun(f"{one.label} launched no kernel on this case")
    if join:
        watch.tallies = {name: joined(tally) for name, tally in watch.tallies.items()}
    return {
        "kernels": list(watch.tallies),
        "arch": watch.arch or DEFAULT_ARCH,
        "op": one.op.name,
        "label": one.label,
        "case": one.case.label,
        "counts": msgspec.to_builtins(watch.counts()),
        "faults": [str(fault) for fault in watch.faults],
        "loads": max(_loads(watch.programs[name], name) for name in watch.tallies),
    }


def _loads(ptx: str, name: str) -> int:
    """Loads from global memory in the text of one entry of the PTX."""
    body = re.split(rf"\.entry\s+{re.escape(name)}\s*\(", ptx)[-1].split("\n}", 1)[0]
    return len(re.findall(r"\bld\.(?:\w+\.)*global\b", body))
