"""What torch.compile generates, as a file to start from: the parent's side of `--from-compiled`."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ... import ways
from ...errors import NotRun
from ...session import Session
from ...target import Target
from ...types import Scalar

SECONDS = 600.0


@dataclass(frozen=True)
class Started:
    """A new file, not written yet."""

    op: str
    text: str
    kernels: tuple[str, ...]
    case: str


def started(session: Session, target: Target, case: dict[str, Scalar], arch: str) -> Started:
    """The text of an Op file whose variant is what Inductor wrote for a GPU.

    target: an Op, or a function with `inputs`. Raises AssayError, and NotRun with the reason where
    Inductor leaves work to anything but Triton kernels of its own.
    """
    args = {"target": msgspec.to_builtins(target), "case": case, "arch": arch}
    answer = session.ask(
        "assay.inside.from_compiled.child:main",
        args,
        name=f"from-compiled {target.text}",
        seconds=SECONDS,
        env=ways.here("triton", "cpu").env,
    )
    if "not_run" in answer:
        raise NotRun(answer["not_run"])
    return Started(answer["op"], answer["text"], tuple(answer["kernels"]), answer["case"])
