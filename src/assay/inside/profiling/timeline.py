"""A timeline of one variant, recorded in a child: the parent's side of `assay profile`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from ... import ways
from ...errors import AssayError, NotRun
from ...op import way_of
from ...session import Session
from ...target import Target
from ...types import Scalar
from ..reading import flame
from ..reading.files import summary
from ..reading.trace import read_trace

SECONDS = 600.0
TRACE, FLAME = "trace.json", "flame.svg"


@dataclass(frozen=True)
class Schedule:
    """Calls that are not watched, watched and thrown away, watched and kept."""

    wait: int = 1
    warmup: int = 1
    active: int = 2


@dataclass(frozen=True)
class Recorded:
    """What was recorded, and where the file lies."""

    op: str
    label: str
    case: str
    judge: str
    trace: Path
    schedule: Schedule


def recorded(
    session: Session,
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    device: str,
    folder: Path,
    schedule: Schedule,
    *,
    stacks: bool = False,
) -> Recorded:
    """Records it in a child; the trace stays in `folder`. Raises AssayError, NotRun."""
    to = folder / TRACE
    answer = session.ask(
        "assay.inside.profiling.recording:main",
        {
            "target": msgspec.to_builtins(target),
            "wanted": variant,
            "case": case,
            "device": device,
            "steps": [schedule.wait, schedule.warmup, schedule.active],
            "stacks": stacks,
            "to": str(to),
        },
        name=f"profile {variant}",
        seconds=SECONDS,
        env=ways.here(way_of(variant), device).env,
    )
    if "not_run" in answer:
        raise NotRun(answer["not_run"])
    if not to.is_file():
        raise AssayError(f"profiling {variant}: torch.profiler wrote no trace to {to}")
    return Recorded(answer["op"], answer["label"], answer["case"], answer["judge"], to, schedule)


def lines(found: Recorded, rows: int) -> list[str]:
    """What was recorded as lines of 80 columns."""
    plan = found.schedule
    head = [f"{found.op}  {found.label}  {found.case}  on {found.judge}"]
    head.append(
        f"{plan.active} calls recorded, after {plan.wait} that were not and {plan.warmup} thrown "
        "away; a profiler"
    )
    head.append("takes time itself: how long a call takes, assay bench says")
    return [*head, *summary(found.trace, rows)]


def draw(found: Recorded) -> Path:
    """The flame graph of a trace with stacks, beside it."""
    to = found.trace.with_name(FLAME)
    to.write_text(flame.svg(flame.frames(read_trace(found.trace))))
    return to
