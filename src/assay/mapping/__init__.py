"""Who reads and writes which element: the parent's side of `assay map` and `assay.coverage_map`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from .. import ways
from ..errors import NotRun
from ..op import way_of
from ..session import Session
from ..target import Target
from ..types import Scalar
from .model import Accesses, CoverageMap, Launch, Step, Tensor

SECONDS = 600.0


def mapped(
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    arch: str = "",
    *,
    stepped: bool = False,
) -> CoverageMap:
    """Runs it in a child. Raises AssayError, and NotRun where it can't be run here.

    stepped: in the interpreter or simulator, where the way has one; it is also what runs compiled
    code that can't be run on the CPU.
    """
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        return mapped_in(session, target, variant, case, arch, stepped=stepped)


def mapped_in(
    session: Session,
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    arch: str = "",
    *,
    stepped: bool = False,
) -> CoverageMap:
    """The same, in a session that is open."""
    answer, folder = _asked(session, target, variant, case, arch, stepped)
    why = ""
    if answer.get("uncheckable") and not stepped and _has_other(variant):
        why = str(answer["not_run"])
        answer, folder = _asked(session, target, variant, case, arch, True)
    if "not_run" in answer:
        raise NotRun(answer["not_run"])
    return _made(answer, folder, why)


def _asked(
    session: Session,
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    arch: str,
    stepped: bool,
) -> tuple[dict[str, Any], Path]:
    folder = session.folder()
    args = {
        "target": msgspec.to_builtins(target),
        "wanted": variant,
        "case": case,
        "arch": arch,
        "stepped": stepped,
        "folder": str(folder),
    }
    here = (ways.stepped if stepped else ways.here)(way_of(variant), "cpu")
    name = f"map {variant}"
    answer = session.ask("assay.mapping.child:main", args, name=name, seconds=SECONDS, env=here.env)
    return answer, folder


def _has_other(variant: str) -> bool:
    way = way_of(variant)
    return ways.stepped(way, "cpu").judge != ways.here(way, "cpu").judge


def _made(answer: dict[str, Any], folder: Path, why: str) -> CoverageMap:
    tensors = {}
    for number, said in enumerate(answer["tensors"]):
        accesses = {
            index: Accesses(np.load(folder / f"{number}-{index}.npy")) for index in said["launches"]
        }
        left = np.load(folder / f"{number}-left.npy") if said["left"] else None
        tensors[said["name"]] = Tensor(
            said["name"], said["role"], said["dtype"], tuple(said["shape"]), accesses, left
        )
    launches = tuple(Launch(name, tuple(g), tuple(b)) for name, g, b in answer["launches"])
    return CoverageMap(
        answer["op"],
        answer["label"],
        answer["case"],
        answer["judge"],
        launches,
        tensors,
        tuple(answer["faults"]),
        why,
        tuple(Step(**step) for step in answer["trace"]),
    )
