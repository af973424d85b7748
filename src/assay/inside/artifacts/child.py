"""The child behind `assay show`: one variant on one case, compiled down to machine code, not run.

Messages: {shown}, or {mistake | not_run: text}.
"""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
import torch

from ... import single
from ...describe import variant_facts
from ...errors import AssayError, BuildError, LaunchError, NotRun
from ...inputs import dtype_name
from ...op import way_of
from ...processes.channel import Channel
from ...target import Target
from ...types import Scalar
from .collecting import Found
from .levels import COMPILED
from .model import Shown

MOST = 1 << 25
"""The largest case up to this many elements is taken: small ones are often compiled otherwise."""


def main(channel: Channel, target: dict, wanted: str, case: dict[str, Scalar], arch: str) -> None:
    """Sends one message."""
    try:
        shown = collected(msgspec.convert(target, Target), wanted, case, arch)
        channel.send(shown=msgspec.to_builtins(shown))
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, LaunchError) as error:
        channel.send(not_run=str(error))
    except BuildError as error:
        channel.send(not_run=f"it does not build: {error.first}")


def collected(target: Target, wanted: str, case: dict[str, Scalar], arch: str) -> Shown:
    """Every level of a variant. Raises AssayError, BuildError, LaunchError, NotRun."""
    way = way_of(wanted)
    if way not in COMPILED:
        raise NotRun(f"{way}: no compiler of Assay's makes anything of it")

    def pick() -> single.Single:
        return single.pick(target, wanted, case, most=MOST)

    found = importlib.import_module(f".{way}", __package__).collect(pick, arch)
    return _shown(found)


def _shown(found: Found) -> Shown:
    one = found.one
    digests = {v.name: v.source_hash for v in variant_facts(one.op)}
    return Shown(
        op=one.op.name,
        label=one.label,
        way=one.variant.way,
        case=one.case.label,
        dtypes=_dtypes(found),
        arch=found.arch,
        source_hash=digests.get(one.variant.name, ""),
        parts=tuple(found.parts),
        texts=found.texts,
        absent=found.absent,
        notes=tuple(found.notes),
    )


def _dtypes(found: Found) -> tuple[str, ...]:
    given: list[Any] = [x.dtype for x in found.placed.inputs if isinstance(x, torch.Tensor)]
    made = [dtype for _, dtype in found.placed.specs]
    return tuple(dict.fromkeys(dtype_name(dtype) for dtype in (*given, *made)))
