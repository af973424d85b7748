"""What the zoo of kernels says of itself is true: whom each stands for, and its twin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures import twins
from test_coverage import NAMED, is_defined

from assay.op import way_of
from assay.selftest import zoo
from assay.types import FAIL, OUTCOMES

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "tests"
ROWS = json.loads((HERE / "fixtures" / "field_reports.json").read_text())
"""Rows of the field reports, with how urgent they are and whether they show without a GPU; `by`:
the test that stands for one that is no kernel, or who has it to do. Also of section 12 of the
mission, where no kernel stands for one."""
MISSION = {f"X{n:02}" for n in range(1, 41)}
WRONG, RIGHT = zoo.samples("wrong", HERE), zoo.samples("right", HERE)

MOST_CHANGED = 9
"""Lines that may differ between a wrong kernel and its twin."""
LONGER = {
    "eager/chooses_its_seed": "what the judge's own code sends is sent with other numbers",
    "eager/ships_another_file": "a message of the judge's own code is made up in full",
    "eager/ships_a_short_file": "a message of the judge's own code is made up in full",
}
"""Wrong kernels that are further from their twin, with the reason."""
NEED_A_GPU = {
    "wrong device": "without a GPU there is one device",
}
"""Words that no kernel of the zoo is given, for they need a GPU."""
NO_KERNELS = {
    "wrong strides": "of torch operators, whose fake result differs: tests/test_torch_op.py",
}
"""Words that are said of something other than a kernel."""


def stands_for(sample: zoo.Sample, label: str) -> tuple[str, ...]:
    return (*sample.ids.get(label, ()), *sample.ids.get("", ()))


def ids_of(samples: list[zoo.Sample]) -> set[str]:
    return {name for sample in samples for names in sample.ids.values() for name in names}


def unanswered(rows: dict[str, dict[str, object]], wanted: set[str], known: set[str]) -> list[str]:
    """Rows that neither a kernel stands for, nor a test that exists, nor an issue that is open."""
    found = []
    for name in sorted(wanted):
        by = str(rows.get(name, {}).get("by", ""))
        test = NAMED.fullmatch(by)
        answered = is_defined(ROOT, *test.groups()) if test else by.startswith("open: ")
        if name not in known and not answered:
            found.append(f"{name}: {by or 'no kernel stands for it'}")
    return found


def test_every_urgent_row_that_shows_without_a_gpu_is_answered():
    wanted = {
        name for name, row in ROWS.items() if row.get("cpu") == "yes" and row["priority"] <= 1
    }
    assert len(wanted) > 70
    assert not unanswered(ROWS, wanted, ids_of([*WRONG, *RIGHT]))


def test_every_bug_of_the_mission_has_a_wrong_kernel_or_says_why_not():
    assert not unanswered(ROWS, MISSION, ids_of(WRONG))


def test_a_row_that_nobody_answers_is_found():
    rows = {
        "V1": {"by": "tests/test_zoo.py::test_that_is_gone"},
        "V2": {"by": "tests/test_zoo.py::test_a_row_that_nobody_answers_is_found"},
        "V3": {"by": "open: issue 5"},
        "V4": {},
        "V5": {},
    }
    assert unanswered(rows, set(rows), {"V5"}) == [
        "V1: tests/test_zoo.py::test_that_is_gone",
        "V4: no kernel stands for it",
    ]


def test_ids_are_those_of_rows_that_there_are():
    mission = (HERE / "fixtures" / "mission_ids.txt").read_text()
    known = set(ROWS) | {word.rstrip("*") for word in mission.split()}
    doctor = {f"X{n}" for n in range(1, 9)}
    assert ids_of([*WRONG, *RIGHT]) <= known - doctor
    for sample in [*WRONG, *RIGHT]:
        assert sample.ids, f"{sample.name} does not say whom it stands for: IDS"
        if sample.wrong:
            assert sample.expect
            assert set(sample.ids) <= {"", *sample.expect}, sample.name


def words(samples: list[zoo.Sample]) -> dict[str, set[str]]:
    """Verdict words, and the ways in which each is reached."""
    found: dict[str, set[str]] = {}
    for sample in samples:
        for label, (word, _) in sample.expect.items():
            found.setdefault(word, set()).add(way_of(label))
    return found


def test_every_verdict_word_is_reached_in_two_ways():
    ways = words(WRONG)
    wanted = {word for word, outcome in OUTCOMES.items() if outcome == FAIL}
    assert set(ways) <= wanted
    excused = NEED_A_GPU.keys() | NO_KERNELS.keys()
    assert excused <= wanted
    assert not {word: ways.get(word) for word in wanted - excused if len(ways.get(word, ())) < 2}
    assert not excused & set(ways), "these are reached: they need no excuse"


def test_there_are_enough_kernels_in_enough_ways():
    wrong = [(way_of(label), label) for sample in WRONG for label in sample.expect]
    assert len(wrong) >= 60
    ways = {way for way, _ in wrong}
    assert ways >= {"eager", "python", "triton", "cuda", "numba", "cpp"}


@pytest.mark.parametrize("sample", WRONG, ids=lambda sample: sample.path.stem)
def test_every_wrong_kernel_has_a_right_twin_one_edit_away(sample):
    problems = []
    for label in sample.expect:
        twin = sample.twin(label)
        file, colon, name = twin.partition(":")
        other = zoo.Sample(sample.path.parent / file) if colon else sample
        name = name if colon else twin
        if name in other.expect:
            problems.append(f"{label}: its twin {twin} is wrong itself")
            continue
        count = twins.changed_lines(sample, label, other, name)
        most = 2 * MOST_CHANGED if label in LONGER else MOST_CHANGED
        if not 1 <= count <= most:
            problems.append(f"{label}: {count} lines differ from {twin}")
    assert not problems, "\n" + "\n".join(problems)


TWINS = """
import assay

op = assay.Op("doubled", lambda x: 2 * x, inputs, cases=[])
TEXT = "a\\nb"


def helper(x):
    return x


@op.variant("eager/near")
def near(x):
    return 3 * x


@op.variant("eager/far")
def far(x):
    y = helper(x)
    z = y + x
    return z


def variant(name, text):
    @op.launcher(f"cpp/{name}", source=text)
    def launch(k, y, x):
        k.f(y, x)


variant("right", TEXT)
variant("wrong", TEXT.replace("a", "c"))
for each in ("one", "two"):
    variant(each, TEXT)
"""


def test_lines_between_twins_are_counted(tmp_path: Path):
    (tmp_path / "twins.py").write_text(TWINS)
    sample = zoo.Sample(tmp_path / "twins.py")

    def lines(label: str, twin: str) -> int:
        return twins.changed_lines(sample, label, sample, twin)

    assert lines("eager/near", "eager") == 1
    assert lines("eager/far", "eager") == 4
    assert lines("cpp/wrong", "cpp/right") == 1
    assert lines("cpp/right", "cpp/right") == lines("cpp/one", "cpp/two") == 0
    with pytest.raises(AssertionError, match="has no kernel eager/gone"):
        lines("eager/gone", "eager/near")
