"""The geometry of every launch of a variant on a case: the parent's side of `assay geometry`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ... import ways
from ...errors import NotRun
from ...op import way_of
from ...session import Session
from ...target import Target
from ...types import Scalar
from .assembler import Taken
from .limits import multiprocessor
from .model import Geometry, geometry
from .occupancy import PREDICTED
from .text import lines as text_of

SECONDS = 600.0
COMPILED = ("cuda", "triton", "numba")
"""Ways whose launches can be noted."""


@dataclass(frozen=True)
class Launches:
    """Of one call of a variant: different launches, and how often each occurs."""

    op: str
    label: str
    case: str
    compiled_for: str
    """The architecture of the PTX or cubin that was compiled; registers are those of `arch`."""
    geometries: tuple[Geometry, ...]
    times: tuple[int, ...]
    flops: int | None = None
    bytes: int | None = None
    """Of the whole call, as the Op states them; None where it does not."""
    taken: tuple[Taken | None, ...] = ()
    """What ptxas says of each of the geometries' kernels."""
    operand_bytes: int | None = None
    """Of the different arrays that each launch is given, summed over all launches."""

    @property
    def threads(self) -> int:
        """Of all launches together."""
        return sum(one.threads * times for one, times in zip(self.geometries, self.times))


def launches_of(
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    arch: str = "",
    *,
    multiprocessors: int | None = None,
    carveout: int | str = PREDICTED,
) -> Launches:
    """Compiles it and notes its launches in a child. Needs no GPU.

    arch: default sm_90. multiprocessors, carveout: as `geometry` takes them. Raises AssayError, and
    NotRun where the way can't be compiled here.
    """
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        return launches_in(session, target, variant, case, arch, multiprocessors, carveout)


def launches_in(
    session: Session,
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    arch: str = "",
    multiprocessors: int | None = None,
    carveout: int | str = PREDICTED,
) -> Launches:
    """The same, in a session that is open."""
    arch, way = multiprocessor(arch or ways.DEFAULT_ARCH).arch, way_of(variant)
    if way not in COMPILED:
        raise NotRun(f"{variant}: launches are noted of {', '.join(COMPILED)}, not of {way}")
    args = {"target": msgspec.to_builtins(target), "wanted": variant, "case": case, "arch": arch}
    answer = session.ask(
        "assay.inside.geometry.child:main",
        args,
        name=f"geometry {variant}",
        seconds=SECONDS,
        env=ways.here(way, "cpu").env,
    )
    if "not_run" in answer:
        raise NotRun(answer["not_run"])
    said = [_geometry(launch, arch, multiprocessors, carveout) for launch in answer["launches"]]
    different = list(dict.fromkeys(map(_key, answer["launches"])))
    keys = [_key(launch) for launch in answer["launches"]]
    return Launches(
        answer["op"],
        answer["label"],
        answer["case"],
        answer["compiled_for"],
        tuple(said[keys.index(key)] for key in different),
        tuple(keys.count(key) for key in different),
        answer["flops"],
        answer["bytes"],
        tuple(_taken(answer["launches"][keys.index(key)]) for key in different),
        sum(launch["operand_bytes"] for launch in answer["launches"]),
    )


def _taken(launch: dict[str, Any]) -> Taken | None:
    return msgspec.convert(launch["taken"], Taken) if launch["taken"] else None


def _key(launch: dict[str, Any]) -> tuple[Any, ...]:
    return launch["kernel"], *launch["grid"], *launch["block"], launch["shared"]


def _geometry(
    launch: dict[str, Any], arch: str, multiprocessors: int | None, carveout: int | str
) -> Geometry:
    taken = launch["taken"]
    return geometry(
        tuple(launch["grid"]),
        tuple(launch["block"]),
        arch=arch,
        registers=taken["registers"] if taken else None,
        static_shared=taken["static_shared_bytes"] if taken else 0,
        dynamic_shared=launch["shared"],
        barriers=taken["barriers"] if taken else 0,
        multiprocessors=multiprocessors,
        carveout=carveout,
        name=launch["kernel"],
        why=launch["why"],
    )


def lines(found: Launches) -> Iterator[str]:
    """As text of 80 columns: every different launch, and what the Op says that a call takes."""
    yield f"{found.op}  {found.label}  {found.case}"
    for one, times in zip(found.geometries, found.times):
        if times > 1:
            yield f"{times} times:"
        yield from text_of(one)
        if one.occupancy is not None and found.compiled_for != one.arch:
            yield f"  registers as ptxas gives them on {one.arch} to PTX for {found.compiled_for}"
    stated = [
        f"{number:,} {unit}, {number / found.threads:.3g} a thread"
        for number, unit in ((found.flops, "FLOP"), (found.bytes, "bytes"))
        if number is not None
    ]
    if stated:
        yield f"stated work: {'; '.join(stated)}"
