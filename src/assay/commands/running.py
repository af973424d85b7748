"""`assay check` and `assay bench`: the pipeline with progress, a table or rows, an exit code."""

from __future__ import annotations

import re
import shutil
import signal
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from ..cases import ALIASES, parse_values
from ..clock.protocol import STATES, Wish
from ..errors import AssayError
from ..op import WAYS
from ..pipeline import exit_code
from ..pipeline import run as pipe
from ..report import details, table
from ..request import Progress, Request
from ..rows import Run, encode
from ..session import Session
from ..target import Target, parse
from ..types import Machine, Row, Strength

INTERRUPTED = 130
PLAIN_SECONDS = 10.0
"""Without a terminal, progress is a line on the error stream this often."""


def run(given: dict[str, Any], *, timed: bool) -> int:
    """Runs what the command line asked for; the exit code. Raises AssayError."""
    request = request_of(given, timed=timed)
    require = tuple(given["require"] or ())
    for way in require:
        if way not in WAYS:
            raise AssayError(f"--require {way}: no such way; the ways are {', '.join(WAYS)}")
    kept = Run()
    rows: list[Row] = []
    strengths: list[Strength] = []
    machine: Machine | None = None
    error: AssayError | None = None
    interrupted = False
    screen = Screen(quiet=given["as_json"])
    with screen, Session(kept.folder / "logs", screen.note) as session:
        before = signal.signal(signal.SIGTERM, interrupt)
        try:
            for noun in pipe(session, request, Progress(screen.step, screen.note)):
                kept.write(noun)
                if isinstance(noun, Machine):
                    machine = noun
                elif isinstance(noun, Strength):
                    strengths.append(noun)
                elif isinstance(noun, Row):
                    rows.append(noun)
                    if given["as_json"]:
                        print(encode(noun).decode(), flush=True)
        except KeyboardInterrupt:
            interrupted = True
        except AssayError as mistake:
            error = mistake
        finally:
            signal.signal(signal.SIGTERM, before)
    if not given["as_json"]:
        console = Console(highlight=False)
        if rows:
            table.show(console, rows, machine, timed, strengths)
            if given.get("details"):
                details.show(console, rows)
            console.print(f"rows: {short(kept)}", soft_wrap=True)
    if not rows:
        shutil.rmtree(kept.folder)
    if error is not None:
        raise error
    if interrupted:
        print("assay: interrupted; what was measured is kept", file=sys.stderr)
        return INTERRUPTED
    return exit_code(rows, require)


def interrupt(*_: object) -> None:
    """What SIGTERM does: the same as Ctrl-C."""
    raise KeyboardInterrupt


def short(kept: Run) -> str:
    """Where a run is kept, as seen from the folder it was started in."""
    return str(kept.path.relative_to(kept.root.parent.parent))


def request_of(given: dict[str, Any], *, timed: bool) -> Request:
    """What the command line asked for. Raises AssayError for what makes no sense."""
    return Request(
        targets=tuple(_target(text, given) for text in given["targets"]),
        timed=timed,
        device=given["device"],
        arch=_arch(given["arch"]),
        case=parse_values(given["case"]) if given["case"] else None,
        dtypes=tuple(ALIASES.get(d, d) for d in (given["dtype"] or "").split(",") if d),
        variants=tuple(given["only"] or ()),
        budget=duration(given["budget"], "--budget") if given.get("budget") else 0.0,
        quick=given.get("quick", False),
        slow=given["slow"],
        seed=given["seed"],
        deadline=duration(given["deadline"], "--deadline"),
        drop_barriers=given.get("drop_barriers", False),
        sanitize=given.get("sanitize", False),
        zoo=given["zoo"],
        wish=_wish(given),
    )


def _wish(given: dict[str, Any]) -> Wish:
    """What is asked of timing beyond the usual. Raises AssayError."""
    cache = given.get("cache", "")
    if cache and cache not in STATES:
        raise AssayError(f"--cache {cache}: no such state; say {', '.join(STATES)}")
    sustained = given.get("sustained")
    return Wish(
        cache=cache,
        sustained=duration(sustained, "--sustained") if sustained else 0.0,
        period=given.get("details", False),
    )


def _target(text: str, given: dict[str, Any]) -> Target:
    if given["inputs"] and not given["like"]:
        raise AssayError("--input goes with --like, which says what the function computes")
    return parse(
        text,
        like=given["like"] or "",
        inputs=tuple(given["inputs"] or ()),
        fills=given["fills"],
        kernelbench=given["kernelbench"] or "",
    )


def _arch(text: str) -> str:
    if text and not re.fullmatch(r"sm_\d{2,3}[af]?", text):
        raise AssayError(f"--arch {text}: write it as sm_80, sm_90, sm_90a or sm_100")
    return text


def duration(text: str, option: str) -> float:
    """Seconds of `30s`, `500ms`, `2m` or a bare number."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|min)?", text.strip())
    if not found or float(found.group(1)) <= 0:
        raise AssayError(f"{option} {text}: write a time such as 30s, 500ms or 2m")
    unit = {"ms": 1e-3, "m": 60.0, "min": 60.0}.get(found.group(2) or "s", 1.0)
    return float(found.group(1)) * unit


class Screen:
    """Progress on the error stream: a moving line on a terminal, else only what must be known."""

    def __init__(self, *, quiet: bool):
        console = Console(stderr=True)
        shown = console.is_terminal and not quiet
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Bar(*columns, console=console, transient=True, disable=not shown)
        self._task = self._bar.add_task("starting", total=None)
        self._plain, self._told = not shown and not quiet, time.monotonic()
        self._width = max(20, console.width - 20)

    def __enter__(self) -> Screen:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def step(self, what: str, done: int, total: int) -> None:
        where = f"{done}/{total}  " if total > 1 else ""
        self._say(where + what)

    def note(self, text: str) -> None:
        self._say(text)

    def _say(self, text: str) -> None:
        self._bar.update(self._task, description=text[: self._width])
        if self._plain and time.monotonic() - self._told > PLAIN_SECONDS:
            self._told = time.monotonic()
            print(f"assay: {text}", file=sys.stderr, flush=True)
