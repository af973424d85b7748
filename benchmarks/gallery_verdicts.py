"""Judges the whole library on a GPU: every operator, gradient, way, knob and dtype, hostile inputs.

    python -m benchmarks.gallery_verdicts [--limit 520] [--to FILE] [--only softmax] [--no-zoo]
    python -m benchmarks.gallery_verdicts --parts torch     one of the two parts
    python -m benchmarks.gallery_verdicts --again FILE      goes on where a file of rows ends
    python -m benchmarks.gallery_verdicts --tally FILE...   counts their rows: small enough to keep

First `own`, for each operator in the order of `ordered`: all declared cases of every variant, and
the whole zoo of hostile inputs for the variants that are written here. Then, where time is left,
`torch`, in the same order: the zoo for `eager` and `compiled`, which the oracle holds itself
against anyway. A process a variant runs all dtypes of an operator, and several operators are judged
at once, each with its share of cores and of the GPU's memory. Rows are written as they are made;
what ended is marked, so that `--again` leaves it out. The summary says what failed and why, what
was not run and why, and what the limit cut off. Exit code 1 for a failure, 3 where something of
`own` was cut off.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.machine import cores
from assay.op import ops_in
from assay.pipeline import run
from assay.request import Progress, Request
from assay.rows import decode, encode
from assay.session import Session, Stopped
from assay.target import TOGETHER, library, parse
from assay.types import Row, replace
from benchmarks.first_operators import RESULTS, card, published

BESIDE = 12
"""Operators judged side by side, three for each four cores, at least 4: each has an oracle and two
candidates, of which one waits for the other's verdict."""
HEAVY = ("vecadd", "polynomial", "square", "softmax", "transpose", "layernorm", "scale_bias")
"""Operators with most variants and knobs, which come first, so that none of them is left alone."""
LAST = ("bmm", "hello", "philox", "counters", "float_counters", "histogram", "shift_left")
"""Operators that no target of speed speaks of."""
OWN = ("cuda*", "triton*", "numba*", "cpp*", "python", "extension*")
TORCH = ("eager*", "compiled")
PARTS = ("own", "torch")
Asked = tuple[str, str, str, str]
"""Operator, kernel, dtype, and inputs: `declared` or `hostile`."""
Words = dict[str, dict[str, Any]]
"""Of each word of a verdict how many cases."""


@dataclass
class Kept:
    """The file of rows, and what was written to it."""

    place: Path
    rows: list[Row] = field(default_factory=list)
    whole: list[tuple[str, str]] = field(default_factory=list)
    """Operator and part."""
    mistakes: list[str] = field(default_factory=list)
    parts: list[Session] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        """Ends what runs; nothing more is begun."""
        self.stopped.set()
        with self.lock:
            for part in self.parts:
                part.stop()

    def write(self, line: bytes) -> None:
        with self.lock, self.place.open("ab") as file:
            file.write(line + b"\n")


def main() -> None:
    """Runs it; see the first lines of this file for exit codes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=520.0, help="seconds for all of it")
    parser.add_argument("--to", default="", help="a file for the rows")
    parser.add_argument("--again", default="", help="rows of an earlier run: go on after them")
    parser.add_argument("--only", default="", help="operators, by comma; gradients come with them")
    parser.add_argument("--ways", default="", help="of those written here, by comma")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--no-zoo", action="store_true", help="declared cases alone")
    parser.add_argument("--parts", default=",".join(PARTS), help="of the work, by comma")
    parser.add_argument("--beside", type=int, default=0, help="operators judged at the same time")
    parser.add_argument(
        "--tally", nargs="+", type=Path, help="count rows of files, later ones last; judge nothing"
    )
    given = parser.parse_args()
    if given.tally:
        print(*tally(given.tally), sep="\n")
        return
    own = {way.rstrip("*"): way for way in OWN}
    ways = given.ways.split(",") if given.ways else [*own]
    if unknown := set(ways) - set(own):
        parser.error(f"--ways {','.join(sorted(unknown))}: none of {', '.join(own)}")
    given.ours = tuple(own[way] for way in ways)
    parts = given.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--parts {','.join(sorted(unknown))}: none of {', '.join(PARTS)}")
    if given.no_zoo and "own" not in parts:
        parser.error("--no-zoo leaves nothing of --parts torch, which is a zoo alone")
    parts = [part for part in parts if part == "own" or not given.no_zoo]
    given.beside = given.beside or max(4, min(BESIDE, 3 * cores() // 4))
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        machine = session.machine()
        kept = Kept(place(given, card(machine)))
        if not given.again:
            kept.place.parent.mkdir(parents=True, exist_ok=True)
            kept.place.write_bytes(encode(published(machine)) + b"\n")
        done = ended(kept.place)
        wanted = [
            (name, part)
            for part in parts
            for name in ordered(given.only)
            if (name, part) not in done
        ]
        alarm = threading.Timer(given.limit - (time.monotonic() - begun), kept.stop)
        alarm.daemon = True
        alarm.start()
        with ThreadPoolExecutor(given.beside) as pool:
            futures = [pool.submit(judged, session, kept, *one, given) for one in wanted]
            for future in as_completed(futures):
                print(future.result(), flush=True)
        alarm.cancel()
    cut = {part: [n for n, p in wanted if p == part and (n, p) not in kept.whole] for part in PARTS}
    print(*summary(kept, cut), sep="\n")
    seconds = time.monotonic() - begun
    rate = f"{len(kept.rows) / seconds:.1f} rows a second, {given.beside} operators at once"
    print(f"rows: {kept.place}, {seconds:.0f} s, {rate}")
    failed = kept.mistakes or any(row.outcome == "fail" for row in kept.rows)
    raise SystemExit(1 if failed else 3 if cut["own"] else 0)


def place(given: argparse.Namespace, folder: str) -> Path:
    """The file of rows."""
    if given.again or given.to:
        return Path(given.again or given.to)
    return RESULTS / folder / "gallery_verdicts.jsonl"


def ordered(only: str) -> list[str]:
    """Names of operators and gradients: each is a target, so that none of them takes long."""
    ends = (*HEAVY, *LAST)
    names = only.split(",") if only else [*HEAVY, *(n for n in library() if n not in ends), *LAST]
    made: list[str] = []
    for name in names:
        module = importlib.import_module(f"assay.ops.{TOGETHER.get(name, name)}")
        made += [op.name for op in ops_in(module) if op.name.partition("_grad")[0] == name]
    return made


def ended(path: Path) -> set[tuple[str, str]]:
    """Operators and parts whose rows in a file are whole."""
    lines = (json.loads(line) for line in path.read_bytes().splitlines())
    return {
        (line["name"], line.get("part", "own")) for line in lines if line.get("kind") == "whole"
    }


def asked(name: str, part: str, given: argparse.Namespace) -> Request:
    """What is asked of one operator or gradient in a part."""
    own = part == "own"
    return Request(
        (parse(name),),
        timed=False,
        device=given.device,
        variants=(*TORCH, *given.ours) if own else TORCH,
        deadline=120.0,
        zoo=not given.no_zoo,
        zoo_of=given.ours if own else TORCH,
        declared=own,
        beside=given.beside,
    )


def judged(session: Session, kept: Kept, name: str, part: str, given: argparse.Namespace) -> str:
    """Judges a part of one operator or gradient; a line that says how it went."""
    begun, made, text = time.monotonic(), [], ""
    with kept.lock:
        if kept.stopped.is_set():
            return f"{name} {part}: not begun"
        own = session.part()
        kept.parts.append(own)
    try:
        for noun in run(own, asked(name, part, given), Progress()):
            if isinstance(noun, Row):
                kept.write(encode(published(slim(noun))))
                made.append(noun)
    except AssayError as error:
        text = str(error)
    except Stopped:
        pass
    finally:
        own.close()
    with kept.lock:
        kept.rows += made
        if kept.stopped.is_set():
            return f"{name} {part}: cut off after {len(made)} rows"
        if text:
            kept.mistakes.append(f"{name}: {text}")
        kept.whole.append((name, part))
    kept.write(json.dumps({"kind": "whole", "name": name, "part": part}).encode())
    words = Counter(row.word for row in made)
    said = ", ".join(f"{count} {word}" for word, count in words.most_common()) or text
    return f"{name} {part}: {said} ({time.monotonic() - begun:.0f} s)"


def tally(paths: Sequence[Path]) -> Iterable[str]:
    """A line for each operator, kernel, dtype, kind of inputs and word: how many cases; where and
    why any failed. What a later file says of the same kernel, dtype and inputs counts alone."""
    known: dict[Asked, Words] = {}
    for path in paths:
        known |= counted(path)
    for (op, kernel, dtype, inputs), words in sorted(known.items()):
        told = {"op": op, "kernel": kernel, "dtype": dtype, "inputs": inputs}
        for word, one in sorted(words.items()):
            yield json.dumps({**told, "word": word, **one})


def counted(path: Path) -> dict[Asked, Words]:
    """What a file of rows, or one that --tally made, has of each kernel, dtype and kind of inputs.
    A part of an operator that was cut off says nothing until it is whole; each case counts once."""
    known: dict[Asked, Words] = {}
    rows: dict[tuple[str, str, str], Row] = {}
    for line in path.read_bytes().splitlines():
        if b'"kind":' not in line:
            one = json.loads(line)
            key = tuple(one.pop(name) for name in ("op", "kernel", "dtype", "inputs"))
            known.setdefault(key, {})[one.pop("word")] = one
        elif isinstance(row := decode(line) if b'"kind":"row"' in line else None, Row):
            rows[row.op, row.label, row.case.label] = row
    whole = ended(path)
    for row in rows.values():
        inputs = "hostile" if row.case.zoo else "declared"
        part = "torch" if row.case.zoo and row.way in ("eager", "compiled") else "own"
        if (row.op, part) not in whole:
            continue
        key = row.op, row.label, str(row.case.values.get("dtype", "")), inputs
        one = known.setdefault(key, {}).setdefault(row.word, {"cases": 0})
        one["cases"] += 1
        if row.outcome == "fail":
            one.setdefault("failures", []).append(f"{row.case.label}: {row.reason}")
    return known


def slim(row: Row) -> Row:
    """Without counters: what compilers made is the same in every row of a kernel."""
    return replace(row, counters=None)


def summary(kept: Kept, cut: dict[str, list[str]]) -> Iterable[str]:
    """What failed, why what did not run did not, and what is missing."""
    yield ""
    yield from kept.mistakes
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in kept.rows:
        if row.outcome == "fail":
            groups.setdefault((row.op, row.label, row.word), []).append(row)
    for (op, label, word), rows in groups.items():
        first = f"{rows[0].case.label}: {rows[0].reason}"
        yield f"FAILED {op} {label}: {word}, {len(rows)} cases, as {first}"
    reasons = Counter(f"{r.way}: {r.reason}" for r in kept.rows if r.word == "not run")
    for reason, count in reasons.most_common(12):
        yield f"not run, {count} cases: {reason}"
    words = Counter(row.word for row in kept.rows)
    yield ", ".join(f"{count} {word}" for word, count in words.most_common())
    if cut["own"]:
        yield f"cut off: {', '.join(cut['own'])}"
    if cut["torch"]:
        yield f"no time for the zoo of eager and compiled of: {', '.join(cut['torch'])}"


if __name__ == "__main__":
    main()
