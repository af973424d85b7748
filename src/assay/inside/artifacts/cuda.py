"""`cuda`: what NVRTC left in the build cache, disassembled."""

from __future__ import annotations

import json
from collections import Counter

from ... import cache, single
from ...errors import NotRun
from ...types import Compiled
from ...ways.launch import Recorder
from .collecting import Found, Pick, sass_of
from .model import Part


def collect(pick: Pick, arch: str) -> Found:
    """Raises NotRun where nothing is launched, BuildError with the compiler's first error."""
    one = pick()
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", arch)
    place = cache.place_of(kernel.build.key)
    lowered = json.loads((place / "facts.json").read_text())["lowered"]
    if not lowered or kernel.counters is None:
        raise NotRun(f"{one.label} launched no kernel on this case: choose another with --case")
    ptx, cubin = (place / "kernel.ptx").read_text(), (place / "kernel.cubin").read_bytes()
    found = Found(one, placed, kernel.handle.arch, texts={"ptx": ptx, "log": kernel.build.log})
    counts = _launches(one, placed, kernel.handle.arch)
    for facts in kernel.counters.kernels:
        found.parts.append(_part(facts, lowered[facts.name], cubin, counts[facts.name]))
    return found


def _launches(one: single.Single, placed: single.Placed, arch: str) -> Counter[str]:
    recorder = Recorder(arch)
    one.variant.function(recorder, *placed.outputs, *placed.inputs, **one.knobs)
    return Counter(launch.name for launch in recorder.launches)


def _part(facts: Compiled, entry: str, cubin: bytes, launches: int) -> Part:
    texts, absent = sass_of(cubin, entry)
    return Part(
        name=facts.name,
        entry=entry,
        report=facts,
        reported_by="NVRTC's ptxas",
        launches=launches,
        texts=texts,
        absent=absent,
        cubin=cubin,
    )
