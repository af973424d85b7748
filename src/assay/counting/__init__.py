"""One variant on one case, run on the CPU and counted: the parent's side of `assay count`."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from .. import ways
from ..errors import NotRun
from ..op import way_of
from ..session import Session
from ..simt.counts import Counts
from ..target import Target
from ..types import Scalar

SECONDS = 600.0


@dataclass(frozen=True)
class Counted:
    """What the child said."""

    op: str
    label: str
    case: str
    arch: str
    kernels: tuple[str, ...]
    counts: Counts
    faults: tuple[str, ...]
    loads: int = 0
    """Loads from global memory that are written in the code of a kernel, of the one with most."""


def counted(target: Target, variant: str, case: dict[str, Scalar], arch: str) -> Counted:
    """Runs it in a child. Raises AssayError, and NotRun where it can't be run here."""
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        return counted_in(session, target, variant, case, arch)


def counted_in(
    session: Session,
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    arch: str,
    *,
    join: bool = False,
) -> Counted:
    """The same, in a session that is open. join: accesses of a thread side by side are one."""
    args = {
        "target": msgspec.to_builtins(target),
        "wanted": variant,
        "case": case,
        "arch": arch,
        "join": join,
    }
    answer = session.ask(
        "assay.counting.child:main",
        args,
        name=f"count {variant}",
        seconds=SECONDS,
        env=ways.here(way_of(variant), "cpu").env,
    )
    if "not_run" in answer:
        raise NotRun(answer["not_run"])
    return Counted(
        answer["op"],
        answer["label"],
        answer["case"],
        answer["arch"],
        tuple(answer["kernels"]),
        msgspec.convert(answer["counts"], Counts),
        tuple(answer["faults"]),
        answer["loads"],
    )
