"""`assay tune`: judges and times every configuration, and keeps the fastest for this card."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from ..clock.statistics import seconds
from ..errors import AssayError
from ..operators import native
from ..pipeline import describe, exit_code
from ..pipeline import run as pipe
from ..request import Progress, chosen_device
from ..rows import Run
from ..session import Session
from ..tuning import store
from ..tuning.choosing import Choice, choices
from ..types import Machine, Row
from .running import INTERRUPTED, Screen, interrupt, request_of, short


def run(given: dict[str, Any]) -> int:
    """Runs what the command line asked for; the exit code is that of a bench. Raises AssayError."""
    request = request_of(given, timed=True)
    kept, rows = Run(), list[Row]()
    made: list[Choice] = []
    screen = Screen(quiet=given["as_json"])
    interrupted = False
    with screen, Session(kept.folder / "logs", screen.note) as session:
        before = signal.signal(signal.SIGTERM, interrupt)
        machine = session.machine()
        device = chosen_device(request.device, machine)
        order = _order(session, request)
        try:
            for noun in pipe(session, request, Progress(screen.step, screen.note)):
                kept.write(noun)
                if isinstance(noun, Row):
                    rows.append(noun)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            signal.signal(signal.SIGTERM, before)
            made = list(choices(rows, order))
            if made:
                store.save(machine, device, made)
    calls = "" if interrupted else native_calls(device, screen.note)
    _told(given, rows, made, machine, device, kept)
    if calls and not given["as_json"]:
        Console(highlight=False).print(calls, soft_wrap=True)
    return INTERRUPTED if interrupted else exit_code(rows, ())


def native_calls(device: str, say: Callable[[str], None] = lambda _: None) -> str:
    """Builds what calls of operators without Python need, and tells it; nothing without a GPU."""
    if not device.startswith("cuda"):
        return ""
    try:
        made = native.build(say)
    except AssayError as error:
        return f"calls of operators go by Python: {error}"
    how = "kept" if made.cached else f"built in {made.seconds:.1f} s"
    return f"calls of operators are native: {how}"


def _order(session: Session, request: Any) -> list[str]:
    """Variants in the order in which they are declared."""
    found = [op for target in request.targets for op in describe(session, target)]
    return list(dict.fromkeys(variant.name for op in found for variant in op.variants))


def _told(
    given: dict[str, Any],
    rows: Sequence[Row],
    made: Sequence[Choice],
    machine: Machine,
    device: str,
    kept: Run,
) -> None:
    if given["as_json"]:
        for choice in made:
            print(msgspec.json.encode(choice).decode(), flush=True)
        return
    console = Console(highlight=False)
    gpu = machine.gpu(device)
    console.print(Text(f"tuned for {gpu.name if gpu else machine.cpu}", style="bold"))
    for line in lines(made):
        console.print(Text(line), soft_wrap=True)
    for row in (row for row in rows if row.outcome == "fail"):
        said = f"  {row.label} {row.case.label}: {row.word}: {row.reason}"
        console.print(Text(said, style="red"))
    if rows:
        console.print(f"rows: {short(kept)}", soft_wrap=True)
        console.print(f"kept: {store.path_of(store.key_of(machine, device))}", soft_wrap=True)
    else:
        shutil.rmtree(kept.folder)


def lines(made: Sequence[Choice]) -> Iterator[str]:
    """`  softmax rows=64 n=1025 dtype=float32: cuda/online BLOCK=256, 3.2 us; as fast: triton`."""
    for one in made:
        label = " ".join([one.variant, *(f"{k}={v}" for k, v in one.knobs.items())])
        text = f"  {one.op} {one.case.label}: {label}, {seconds(one.seconds)} ({one.cache})"
        if one.tied:
            text += f"; as fast: {', '.join(one.tied)}"
        if one.over is not None:
            text += f"; not served, and faster: {one.over[0]}, {seconds(one.over[1])}"
        yield text
    if not made:
        yield "  nothing was right and timed: nothing is kept"
