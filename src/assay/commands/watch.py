"""`assay bench FILE --watch`: what happens at each save, as lines; or rows alone, with `--json`."""

from __future__ import annotations

import shutil
import signal
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ..errors import AssayError
from ..pipeline import exit_code
from ..report import strength, table, units
from ..report.hostile import STYLES
from ..request import Progress
from ..rows import Run, encode
from ..session import Session
from ..types import Machine, Row, Strength
from ..watching.judging import Looked, Timed
from ..watching.loop import Done, Event, Mistake, Saved, Watch
from .running import Screen, interrupt, request_of, short

MOST_NAMES = 4


def run(given: dict[str, Any]) -> int:
    """Watches until Ctrl-C; the exit code that the last version deserves. Raises AssayError."""
    _refuse(given)
    request = request_of(given, timed=True)
    kept = Run()
    shown = _Shown(kept, as_json=given["as_json"])
    before = signal.signal(signal.SIGTERM, interrupt)
    screen = Screen(quiet=given["as_json"])
    try:
        with screen, Session(kept.folder / "logs", screen.note) as session:
            watch = Watch(session, request, Progress(screen.step, screen.note))
            try:
                shown.begin(request.targets[0].text)
                for event in watch.events():
                    shown.show(event)
            except KeyboardInterrupt:
                pass  # how a watch ends
            finally:
                for event in watch.close():
                    shown.show(event)
    finally:
        signal.signal(signal.SIGTERM, before)
        if not shown.written:
            shutil.rmtree(kept.folder)
    shown.end()
    return exit_code(list(shown.rows.values()), tuple(given["require"] or ()))


def _refuse(given: dict[str, Any]) -> None:
    if given["zoo"]:
        raise AssayError(
            "--watch with --zoo: a watch judges the declared cases; drop --zoo, and run "
            "`assay check` for hostile inputs once the file is done"
        )


class _Shown:
    """What was printed and written so far."""

    def __init__(self, kept: Run, *, as_json: bool):
        self._kept, self._json = kept, as_json
        self._console = Console(highlight=False)
        self._machine: Machine | None = None
        self._saved = Saved(0, (), time.time())
        self._broken = -1
        """The save that could not be judged."""
        self._cases: set[str] = set()
        """Cases whose table was printed for this save."""
        self.rows: dict[tuple[str, str, str], Row] = {}
        """The last row of each variant on each case."""
        self.written = 0

    def begin(self, target: str) -> None:
        """Says what is watched."""
        if not self._json:
            self._print(f"watching {target}: save it and it is judged anew; Ctrl-C ends")

    def end(self) -> None:
        """Says where the rows are."""
        if not self._json and self.written:
            self._console.print(f"rows: {short(self._kept)}", soft_wrap=True)

    def show(self, event: Event) -> None:
        """Prints an event; writes it if it is one to keep."""
        if isinstance(event, Row):
            self._row(event)
        elif isinstance(event, (Machine, Strength)):
            self._kept.write(event)
            if isinstance(event, Machine):
                self._machine = event
            elif not self._json:
                text = strength.line(event)
                self._print(text, STYLES["no evidence" if event.alive else "pass"])
        elif isinstance(event, Saved):
            self._saved, self._cases = event, set()
        elif isinstance(event, Mistake):
            self._broken, self.rows = event.save, {}
            print(f"assay: {self._name()}: {event.text}", file=sys.stderr, flush=True)
        elif not self._json:
            self._told(event)

    def _row(self, row: Row) -> None:
        if not row.quick:
            self._kept.write(row)
            self.written += 1
            self.rows[row.op, row.label, row.case.label] = row
        if self._json:
            print(encode(row).decode(), flush=True)
        elif row.quick and row.save == self._saved.save:
            taken = units.seconds(max(0.0, time.time() - self._saved.at))
            word = f"{row.word}: {row.reason}" if row.reason else row.word
            text = f"  quick  {row.label}  {row.case.label}  {word}  ({taken} after the save)"
            self._print(text, STYLES[row.outcome])

    def _told(self, event: Looked | Timed | Done) -> None:
        if isinstance(event, Looked):
            self._print(f"{self._name()}: {_changed(event.changed)}", "bold")
        elif isinstance(event, Timed):
            self._cases.add(event.rows[0].case.label)
            self._case(list(event.rows))
        elif event.save != self._broken:
            self._done(event)

    def _done(self, event: Done) -> None:
        """Tables of the cases in which something was judged and nothing timed, and a summary."""
        by_case: dict[str, list[Row]] = {}
        for row in event.rows:
            by_case.setdefault(row.case.label, []).append(row)
        self.rows = {(r.op, r.label, r.case.label): r for r in event.rows}
        for label, rows in by_case.items():
            if label not in self._cases and any(row.save == event.save for row in rows):
                self._case(rows)
        self._print(table.summary(event.rows), "bold")
        for line in table.advice(event.rows):
            self._print(f"  {line}")

    def _case(self, rows: list[Row]) -> None:
        table.one_case(self._console, rows, self._machine, True)

    def _name(self) -> str:
        """`save 3 (kernel.cu)`; folders, which change with what lies in them, are not named."""
        names = " ".join(path.name for path in self._saved.files if not path.is_dir())
        return f"save {self._saved.save} ({names})" if names else f"save {self._saved.save}"

    def _print(self, text: str, style: str = "") -> None:
        short_text = text.replace(f"{Path.cwd()}/", "")
        for line in textwrap.wrap(short_text, self._console.width, subsequent_indent="    "):
            self._console.print(Text(line, style=style))
        self._console.file.flush()


def _changed(names: tuple[str, ...]) -> str:
    if not names:
        return "no variant changed; all rows stay"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"judging {', '.join(names[:MOST_NAMES])}{more}"
