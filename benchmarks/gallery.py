"""The gallery against its strongest peers: judges, then times each operator's cases side by side.

    python -m benchmarks.gallery [--limit 420] [--only softmax,transpose] [--budget 1] [--to FILE]
    python -m benchmarks.gallery --only targets       a group: targets, activations, elements, ...
    python -m benchmarks.gallery --processes 3        each case in three fresh processes
    python -m benchmarks.gallery --again FILE         the operators that a file has not all of
    python -m benchmarks.gallery --again FILE --only gelu     these anew, in place of the file's
    python -m benchmarks.gallery --report FILE        what rows that were kept say
    python -m benchmarks.gallery --join FILE... --to FILE     of each operator the last whole rows

The sweep is fixed in sweep.py, the targets in targets.py, peers are in peers.py. A group of
operators after the other: all of it are judged beside one another first; once nothing else uses the
GPU, they are timed one after the other, in order of value. Rows are written as they are made, to
benchmarks/results/<card>/gallery.jsonl or to `--to`; what the limit cuts off is told. `--again`
goes on there: what was cut off comes anew as a whole, so that no ratio spans two runs. After each
operator: ours against every peer, with the interval of the ratio, and the targets that speak of it.
At the end all targets, what each operator was timed with, and every case that a peer wins, worst
first. Target 15 is `benchmarks.host`.

A host with two GPUs does two sweeps at once, each with its own CUDA_VISIBLE_DEVICES, ASSAY_CACHE,
and half of the cores (`taskset`); `--join` puts their files together.

The first call builds `extension` and CUB, for half a minute each while others are judged.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from assay.clock.statistics import seconds
from assay.errors import AssayError
from assay.pipeline import run
from assay.processes import PRELOAD, ForkServer
from assay.request import Progress, Request
from assay.rows import encode
from assay.rows import read as nouns
from assay.session import Session, Stopped
from assay.target import parse
from assay.types import Machine, Row
from benchmarks import standing, targets
from benchmarks.first_operators import RESULTS, card, published
from benchmarks.sweep import PEERS, SWEEP, Part, chosen
from benchmarks.targets import OURS

SMALL = 96
"""Largest size of `--small`."""
JOBS, LOADED = "assay.jobs", "benchmarks.loaded"
HOST_SECONDS = 30.0
"""What the limit leaves for target 15."""


def main() -> None:
    """Runs the sweep; exits 1 if a kernel of ours failed or something was cut off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=420.0, help="seconds for all of it")
    parser.add_argument("--only", default="", help="operators and groups of them, by comma")
    parser.add_argument("--dtype", default="", help="of the sweep's dtypes, by comma")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of sampling a case")
    parser.add_argument("--processes", type=int, default=1, help="in which each case is timed")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--to", default="", help="a file for the rows")
    parser.add_argument("--small", action="store_true", help="tiny cases, to try the script itself")
    parser.add_argument("--again", type=Path, help="rows of an earlier run: the rest of the sweep")
    parser.add_argument("--report", default="", help="reads rows, measures nothing")
    parser.add_argument("--join", type=Path, nargs="+", help="files whose rows --to gets")
    parser.add_argument("--no-host", action="store_true", help="leaves target 15 out")
    given = parser.parse_args()
    try:
        chosen(given.only)
    except ValueError as error:
        parser.error(f"--only {error}")
    if given.join:
        if not given.to:
            parser.error("--join: say with --to which file gets the rows")
        join(given.join, Path(given.to))
        return
    if given.report:
        print(*report(read(Path(given.report)), Path(given.report).parent), sep="\n")
        return
    raise SystemExit(measure(given))


def read(path: Path) -> list[Row]:
    """The rows of a file."""
    return [noun for noun in nouns(path) if isinstance(noun, Row)]


def report(rows: Sequence[Row], place: Path) -> Iterator[str]:
    """All that rows say: targets, clocks, losses. place: the folder that they are kept in."""
    yield from targets.table(rows)
    yield from standing.host(place)
    yield from standing.clocks(rows)
    yield from standing.lost(rows)


def join(paths: Sequence[Path], to: Path) -> None:
    """Writes one file: of each operator all rows of one file, so that no ratio spans two: of the
    last that has all of its cases timed; else of the last that has any timed; else of the last that
    has it at all. Ends where files are of different cards.
    """
    machines: list[Machine] = []
    kept: dict[str, list[Row]] = {}
    for path in paths:
        found = list(nouns(path))
        machines += [noun for noun in found if isinstance(noun, Machine)]
        own: dict[str, list[Row]] = {}
        for noun in found:
            if isinstance(noun, Row):
                own.setdefault(noun.op, []).append(noun)
        for op, rows in own.items():
            if told(rows) >= told(kept.get(op, [])):
                kept[op] = rows
            elif any(row.timing for row in rows):
                print(f"{op}: an earlier file has more of it timed than {path}, and counts")
    cards = {card(machine) for machine in machines}
    if len(cards) != 1:
        raise SystemExit(f"--join: one card's files, please; these are of {sorted(cards)}")
    write(to, (machines[-1], *(row for rows in kept.values() for row in rows)))


def write(place: Path, kept: Iterable[Row | Machine]) -> None:
    """A file of these, a line each."""
    place.write_bytes(b"".join(encode(one) + b"\n" for one in kept))


def told(rows: Sequence[Row]) -> tuple[bool, bool]:
    """Of an operator's rows: whether every case of the sweep was timed, and whether any was."""
    return bool(whole(rows)), any(row.timing for row in rows)


def whole(rows: Sequence[Row]) -> set[str]:
    """The operators of which every case of the sweep was timed."""
    found = set()
    for part in SWEEP:
        mine = [row for row in rows if row.op == part.op]
        timed = {tuple(sorted(r.case.values.items())) for r in mine if r.timing and r.way in OURS}
        if all(tuple(sorted(case.items())) in timed for case in part.cases):
            found.add(part.op)
    return found


def measure(given: argparse.Namespace) -> bool:
    """Whether something failed or was cut off."""
    begun = time.monotonic()
    before = list(nouns(given.again)) if given.again else []
    rows = [noun for noun in before if isinstance(noun, Row)]
    done = set() if given.only else whole(rows)
    wanted = [part for part in chosen(given.only) if part.op not in done]
    anew = {part.op for part in wanted}
    rows = [row for row in rows if row.op not in anew]
    if not wanted:
        place = given.again.parent if given.again else Path()
        print(*report(rows, place), "nothing of the sweep is left", sep="\n")
        return False
    groups = [
        [part for part in wanted if part.group == group]
        for group in dict.fromkeys(part.group for part in wanted)
    ]
    with tempfile.TemporaryDirectory() as logs, opened(Path(logs)) as session:
        machine = session.machine()
        for other in (noun for noun in before if isinstance(noun, Machine)):
            if card(other) != card(machine):
                raise SystemExit(f"{given.again} is of {card(other)}, and this is {card(machine)}")
        place = given.again or RESULTS / card(machine) / "gallery.jsonl"
        place = Path(given.to) if given.to else place
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_suffix(".new")
        write(new, (published(machine), *rows))
        new.replace(place)
        left = given.limit - (0 if given.no_host else HOST_SECONDS) - (time.monotonic() - begun)
        turns = [Turns(group, begun) for group in groups]
        alarm = threading.Timer(left, stop, (turns,))
        alarm.daemon = True
        alarm.start()
        for group, own in zip(groups, turns):
            for made in together(session, group, given, own, place):
                rows += made
        alarm.cancel()
    cut = [name for own in turns for name in own.names if name in own.cut]
    host = [] if given.no_host else [target_15(given, place)]
    print("\nall targets:", *report(rows, place.parent), sep="\n")
    if cut:
        print(f"cut off by --limit {given.limit:.0f}: {', '.join(cut)}")
    print(f"rows: {place}, {time.monotonic() - begun:.0f} s")
    return bool(cut) or any(host) or any(r.outcome == "fail" and r.way in OURS for r in rows)


@contextlib.contextmanager
def opened(logs: Path) -> Iterator[Session]:
    """A session whose children find Inductor imported, if that can be: see loaded.py."""
    with contextlib.ExitStack() as stack:
        server = None
        if PRELOAD:
            server = stack.enter_context(contextlib.closing(ForkServer((*PRELOAD, JOBS, LOADED))))
            try:
                server.wait_ready()
            except AssayError:
                print("  Inductor can't be imported ahead: every process does it", flush=True)
                server = None
        yield stack.enter_context(Session(logs, server=server))


def stop(turns: Sequence[Turns]) -> None:
    """Ends those that run; none is begun."""
    for each in turns:
        each.stop()


def together(
    session: Session, group: Sequence[Part], given: argparse.Namespace, turns: Turns, place: Path
) -> Iterator[list[Row]]:
    """The rows of each operator of a group, which are told as they come."""
    with ThreadPoolExecutor(len(group)) as pool:
        futures = [pool.submit(all_of, session, part, given, turns, place) for part in group]
        for part, future in zip(group, futures):
            made = future.result()
            print(*lines(made), *targets.table(made, (part.op,)), sep="\n", flush=True)
            yield made


class Turns:
    """Who is timed when: once all are judged, one after the other, as they are named."""

    def __init__(self, parts: Sequence[Part], begun: float):
        self.names, self.begun = [part.op for part in parts], begun
        self.asked = sum(part.asked for part in parts)
        self.judging, self.left = set(self.names), list(self.names)
        self.cut: set[str] = set()
        self.parts: list[Session] = []
        self._stopped = False
        self.writing = threading.Lock()
        self._moved = threading.Condition()

    def beside(self, part: Part) -> int:
        """Of how many one is judged, by cores: who has most to do gets most, so that none is left
        alone at the end."""
        return min(len(self.names), round(self.asked / part.asked))

    def stop(self) -> None:
        """Ends what runs; nothing more is begun."""
        with self._moved:
            self._stopped = True
            self.cut |= set(self.left)
            parts = list(self.parts)
            self._moved.notify_all()
        for part in parts:
            part.stop()

    def take(self, session: Session) -> Session:
        """A session for one operator. Raises Stopped if it is too late for one."""
        with self._moved:
            if self._stopped:
                raise Stopped
            self.parts.append(session.part())
            return self.parts[-1]

    def judged(self, name: str) -> None:
        """Waits until nobody judges, and whoever comes before is timed. Raises Stopped."""
        with self._moved:
            self.judging.discard(name)
            self._tell(f"{name} is judged, {len(self.judging)} to come")
            self._moved.notify_all()
            self._moved.wait_for(
                lambda: self._stopped or (not self.judging and self.left[0] == name)
            )
            if self._stopped:
                raise Stopped
            self._tell(f"timing {name}")

    def over(self, name: str) -> None:
        """It is timed, or came to nothing."""
        with self._moved:
            self.judging.discard(name)
            self.left.remove(name)
            self._moved.notify_all()

    def _tell(self, what: str) -> None:
        print(f"  {time.monotonic() - self.begun:4.0f} s  {what}", flush=True)


def all_of(
    session: Session, part: Part, given: argparse.Namespace, turns: Turns, place: Path
) -> list[Row]:
    """The rows of one operator: judged beside the others, timed alone, written as they are made."""
    made: list[Row] = []
    with contextlib.suppress(Stopped):
        try:
            with contextlib.closing(turns.take(session)) as own:
                for row in measured(own, part, given, turns):
                    made.append(row)
                    with turns.writing, place.open("ab") as file:
                        file.write(encode(published(row)) + b"\n")
        finally:
            turns.over(part.op)
    return made


def measured(
    session: Session, part: Part, given: argparse.Namespace, turns: Turns
) -> Iterator[Row]:
    """Rows of one operator; a mistake of the whole is told, and the sweep goes on."""
    request = Request(
        (parse(f"{Path(__file__).with_name('peers.py')}:{part.op}"),),
        device=given.device,
        dtypes=tuple(given.dtype.split(",")) if given.dtype else (),
        variants=(*part.ours, *PEERS),
        budget=given.budget,
        processes=given.processes,
        deadline=120.0,
        beside=turns.beside(part),
    )
    shrunk = [
        {n: min(v, SMALL) if isinstance(v, int) else v for n, v in c.items()} for c in part.cases
    ]
    each = [replace(request, case=case) for case in shrunk[-2:]] if given.small else [request]
    progress = Progress(step=steps(turns.begun), judged=lambda: turns.judged(part.op))
    try:
        for asked in each:
            for noun in run(session, asked, progress):
                if isinstance(noun, Row):
                    yield noun
    except AssayError as error:
        if not session.stopped.is_set():  # else its child was ended on purpose
            print(f"{part.op}: {error}", flush=True)


def steps(begun: float) -> Callable[[str, int, int], None]:
    """Tells of each case that is timed, and when."""

    def step(what: str, done: int, total: int) -> None:
        if what.startswith("timing"):
            print(f"  {time.monotonic() - begun:4.0f} s  {what} ({done} of {total})", flush=True)

    return step


def target_15(given: argparse.Namespace, place: Path) -> bool:
    """Runs benchmarks.host in a process of its own; whether it failed."""
    command = [sys.executable, "-m", "benchmarks.host", "--device", given.device]
    command += ["--to", str(place.with_name("host.jsonl"))]
    try:
        return subprocess.run(command, timeout=2 * HOST_SECONDS).returncode != 0
    except subprocess.TimeoutExpired:
        print(f"target 15: not measured, no answer in {2 * HOST_SECONDS:.0f} s")
        return True


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """What failed or did not run; then of each case ours, and each other kernel beside it."""
    told: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.outcome == "fail" or row.not_timed or (row.word == "not run" and row.way != "cuda"):
            key = row.label, row.word, row.reason or row.not_timed
            told.setdefault(key, []).append(row.case.label)
    for (label, word, why), where in told.items():
        cases = where[0] if len(where) == 1 else f"{len(where)} cases"
        yield f"  {rows[0].op} {label} {cases}: {word}: {why}"
    for label in dict.fromkeys(row.case.label for row in rows if row.timing):
        mine = [row for row in rows if row.case.label == label and row.timing]
        ours = targets.best(mine, ways=OURS)
        if ours is None or ours.timing is None:
            yield f"{mine[0].op} {label}: none of ours was timed"
            continue
        rate = f", {ours.bytes / ours.timing.median / 1e9:,.0f} GB/s" if ours.bytes else ""
        copied = targets.of_copy(mine, ours)
        share = f", {copied.shown[1]:.3f} of the copy beside it" if copied else ""
        yield f"{ours.op} {label}: {ours.label} {seconds(ours.timing.median)}{rate}{share}"
        for row in targets.middle(mine):
            if row is not ours:
                low, middle, high = targets.against(mine, ours, row).shown
                name = f"{row.label}{standing.besides(row)}"
                yield f"    {middle:6.3f} x {name} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
