"""What compilers make of a variant: the parent's side of `assay show`."""

from __future__ import annotations

import msgspec

from ... import ways
from ...errors import NotRun
from ...op import way_of
from ...session import Session
from ...target import Target
from ...types import Scalar
from .model import Shown

SECONDS = 600.0


def shown(
    session: Session, target: Target, variant: str, case: dict[str, Scalar], arch: str
) -> Shown:
    """Every level of one variant, compiled in a child. Raises AssayError, and NotRun."""
    args = {"target": msgspec.to_builtins(target), "wanted": variant, "case": case, "arch": arch}
    answer = session.ask(
        "assay.inside.artifacts.child:main",
        args,
        name=f"show {variant}",
        seconds=SECONDS,
        env=ways.here(way_of(variant), "cpu").env,
    )
    if "not_run" in answer:
        raise NotRun(answer["not_run"])
    return msgspec.convert(answer["shown"], Shown)
