"""A watch: what a save changes, what it leaves alone, and a real one on a file that is edited."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.describe import CaseFacts
from assay.errors import AssayError
from assay.request import Progress, Request
from assay.session import Session
from assay.target import parse
from assay.types import Case, Row
from assay.watching.files import Files, mark
from assay.watching.judging import Looked, Timed, by_size
from assay.watching.loop import Done, Event, Mistake, Saved, Watch
from assay.watching.parts import Parts

OP = """
import time
import torch
import assay

def reference(x):
    return twice(x)

def twice(x):
    return 2 * x

op = assay.Op(
    "twice",
    reference,
    lambda make, n, dtype: (make.normal(n, dtype=dtype),),
    cases=assay.grid(n=[4096, 100], dtype=["float32"]),
)

def helper(x):
    return x + x

@op.variant("python/one")
def one(x):
    return helper(x)

@op.variant("python/other")
def other(x):
    return x * 2
"""


def changed(before: str, after: str) -> tuple[bool, set[str]]:
    """Whether an edit changes the core, and which functions outside of it."""
    old, new = Parts(before), Parts(after)
    names = ("reference", "twice", "helper", "one", "other")
    return old.core != new.core, {n for n in names if old.closure(n) != new.closure(n)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return x * 2", "return 2 * x", (False, {"other"})),
        ("return x + x", "return x + x + 0", (False, {"helper", "one"})),
        ("return 2 * x", "return x * 2.0", (True, set())),
        ("return twice(x)", "return twice(x) + 0", (True, set())),
        ("n=[4096, 100]", "n=[4096]", (True, set())),
        ('"python/one"', '"python/first"', (True, {"one"})),
        ("import time", "import time, os", (True, set())),
        ("    return x * 2", "    # a comment\n    return x * 2", (False, set())),
    ],
)
def test_an_edit_touches_the_op_or_only_some_variants(
    old: str, new: str, expected: tuple[bool, set[str]]
) -> None:
    assert OP.count(old) == 1
    assert changed(OP, OP.replace(old, new)) == expected


@pytest.mark.parametrize(
    "line",
    [
        "reference = globals()['other']",
        "twice = getattr(op, name)",
        "exec(text)",
        "kept = other",
        "class Kept:\n    call = other",
        "@now\ndef run():\n    return other(1)",
        "def named(x=other):\n    return x",
    ],
)
def test_what_may_reach_a_function_makes_it_part_of_the_op(line: str) -> None:
    before = f"{OP}\n{line}\n"
    assert changed(before, before.replace("return x * 2", "return x * 3"))[0]


def test_a_save_is_seen_by_time_size_and_inode(tmp_path: Path) -> None:
    path, absent = tmp_path / "a.py", tmp_path / "b.cu"
    path.write_text("1")
    files = Files.now([path, absent])
    assert files.changed() == []
    absent.write_text("")
    assert files.changed() == [absent]
    said = path.stat()
    (tmp_path / "new").write_text("2")
    os.utime(tmp_path / "new", ns=(said.st_atime_ns, said.st_mtime_ns))
    os.replace(tmp_path / "new", path)
    assert path in files.changed(), "an editor that renames keeps size and perhaps time"
    assert files.only([path]).marks == {path: files.marks[path]}
    assert mark(tmp_path / "none") is None


def test_a_file_that_is_cut_off_first_is_not_read_half(tmp_path: Path) -> None:
    path, now = tmp_path / "a.py", [0.0]
    path.write_text("whole")
    files, writes = Files.now([path]), ["", "", "wh", "whole again"]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if writes:
            path.write_text(writes.pop(0))

    settled = files.settled(sleep, lambda: now[0])
    assert settled.marks[path] == mark(path)
    assert path.read_text() == "whole again"
    path.unlink()
    gone = settled.settled(sleep, lambda: now[0])
    assert gone.marks[path] is None
    assert now[0] > 0.5, "only time tells that it does not come back"


def test_the_first_case_is_the_smallest_of_the_first_dtype() -> None:
    cases = [
        CaseFacts(case=Case({"n": n, "dtype": d})) for d in ("float32", "bfloat16") for n in (9, 2)
    ]
    ordered = by_size(cases)
    assert ordered[0] is cases[1]
    assert ordered[1:] == [cases[0], cases[2], cases[3]]


class Driven:
    """A real watch on a file, and what it said."""

    def __init__(self, session: Session, path: Path, variants: tuple[str, ...], case: dict):
        request = Request(
            (parse(str(path)),), device="cpu", variants=variants, case=case, budget=0.02, seed=1
        )
        self.path, self.events = path, []
        self.watch = Watch(session.part(), request, Progress())
        self._stream: Iterator[Event] = self.watch.events()

    def until(self, wanted: Callable[[Event], bool], seconds: float = 30.0) -> list[Event]:
        """Events up to the first that is wanted."""
        end, found = time.monotonic() + seconds, []
        for event in self._stream:
            found.append(event)
            if wanted(event):
                return found
            assert time.monotonic() < end, found
        raise AssertionError("a watch does not end by itself")

    def done(self) -> tuple[list[Event], tuple[Row, ...]]:
        """Events of the version at hand, and the rows that hold for it."""
        found = self.until(lambda event: isinstance(event, Done))
        assert isinstance(found[-1], Done)
        return found, found[-1].rows

    def save(self, old: str, new: str) -> None:
        """Edits the file as an editor does: beside it, then renamed."""
        text = self.path.read_text()
        assert text.count(old) == 1, old
        beside = self.path.with_suffix(".swp")
        beside.write_text(text.replace(old, new))
        os.replace(beside, self.path)


@pytest.fixture
def drive(session: Session, tmp_path: Path) -> Iterator[Callable[..., Driven]]:
    """`drive(*variants, **case)` watches a file that holds OP."""
    made: list[Driven] = []

    def driven(*variants: str, **case: int) -> Driven:
        path = tmp_path / "watched.py"
        path.write_text(OP)
        made.append(Driven(session, path, variants, case))
        return made[0]

    yield driven
    for one in made:
        one.watch.close()


Drive = Callable[..., Driven]


def of(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def oracle_of(driven: Driven) -> Any:
    """The process that knows the truth now."""
    return driven.watch._setting.oracles._kept["twice"].oracle


def words(rows: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row.variant, set()).add(row.word)
    return found


@pytest.mark.full
def test_edits_are_judged_anew_and_nothing_else_is(drive: Drive) -> None:
    driven = drive("eager", "python*", n=100)
    events, rows = driven.done()
    assert words(rows) == {v: {"right"} for v in ("eager", "python/one", "python/other")}
    assert all(row.timing and not row.quick and row.save == 0 for row in rows)
    told = of(events, Row)
    assert told[0].quick, "the first case is told before anything is timed"
    assert len({r.timing.schedule for r in rows if r.case == rows[0].case}) == 1
    oracle = oracle_of(driven)

    driven.save("x * 2", "x * 2.001")
    events, rows = driven.done()
    assert of(events, Looked)[0].changed == ("python/other",)
    assert {r.variant for r in of(events, Row)} == {"python/other"}, "nothing right is untimed"
    assert words(rows)["python/other"] == {"wrong value"}
    assert {r.save for r in rows if r.variant == "python/one"} == {0}
    assert oracle_of(driven) is oracle

    driven.save("x * 2.001", "x * (2")
    events, _ = driven.done()
    assert "SyntaxError" in of(events, Mistake)[0].text
    assert of(events, Row) == []

    driven.save("x * (2", "x + x + 0")
    events, rows = driven.done()
    assert of(events, Looked)[0].changed == ("python/other",)
    assert words(rows)["python/other"] == {"right"}
    assert [t.save for t in of(events, Timed)] == [3]
    beside = [r for r in rows if r.case == rows[0].case]
    assert len({r.timing.schedule for r in beside}) == 1, "kept rows are timed beside what changed"

    driven.save("return 2 * x", "return 3 * x")
    events, rows = driven.done()
    assert of(events, Looked)[0].changed == ("eager", "python/one", "python/other")
    assert words(rows)["python/one"] == {"wrong value"}, "the truth is another one now"
    assert oracle_of(driven) is not oracle
    assert driven.watch.spares.used > 4


@pytest.mark.full
def test_what_hangs_is_abandoned_at_the_next_save(drive: Drive) -> None:
    driven = drive("python*")
    driven.save("return x * 2", "time.sleep(60); return x * 2")
    driven.until(lambda e: isinstance(e, Row) and e.quick and e.variant == "python/one")
    begun = time.monotonic()
    driven.save("time.sleep(60); return x * 2", "return x * 2")
    events, rows = driven.done()
    assert time.monotonic() - begun < 20
    assert words(rows)["python/other"] == {"right"}
    late = [r for r in of(events, Row) if r.save == 0 and r.variant == "python/one"]
    assert all(r.not_timed == "saved again before its turn" for r in late if not r.quick)
    assert not [r for r in of(events, Row) if r.variant == "python/other" and r.save == 0]


def test_a_kernel_that_crashes_costs_its_own_rows_and_the_watch_goes_on(drive: Drive) -> None:
    driven = drive("python/other")
    driven.save("return x * 2", "import os; os._exit(3)")
    events, rows = driven.done()
    assert words(rows) == {"python/other": {"crashed"}}
    assert [r.case.label for r in rows] == ["n=100 dtype=float32", "n=4096 dtype=float32"]
    assert [r.case.label for r in of(events, Row) if r.quick] == ["n=100 dtype=float32"]
    driven.save("os._exit(3)", "return x * 4")
    _, rows = driven.done()
    assert words(rows) == {"python/other": {"wrong value"}}


def test_closing_keeps_what_waits_for_its_turn(drive: Drive) -> None:
    driven = drive("python*")
    driven.until(lambda e: isinstance(e, Row) and e.quick)
    left = [event for event in driven.watch.close() if isinstance(event, Row) and not event.quick]
    assert all(row.not_timed == "the watch ended before its turn" for row in left)
    assert left


def test_two_targets_or_hostile_inputs_are_refused(session: Session, tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="watches one target, and 2 were given"):
        Watch(session.part(), Request((parse("square"), parse("softmax"))), Progress())
    result = CliRunner().invoke(app, ["bench", "square", "--watch", "--zoo"])
    assert isinstance(result.exception, AssayError)
    assert "judges the declared cases" in str(result.exception)


def test_rows_as_json_carry_the_number_of_their_save() -> None:
    row = Row(op="o", variant="v", way="python", outcome="pass", word="right", save=3, quick=True)
    from assay.rows import decode, encode

    assert decode(encode(row)) == row
    assert json.loads(encode(row))["save"] == 3
    assert Saved(0, (), 0.0).files == ()
