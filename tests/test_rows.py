"""Rows: lossless, versioned, readable for ever, and never overwritten."""

from __future__ import annotations

import json
import math
import typing
from pathlib import Path
from types import UnionType
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay import rows
from assay.errors import RowsError
from assay.types import SCHEMA, Case, Counters, Machine, Roofs, Row, Strength, Timing, Verdict

ROOT = Path(__file__).resolve().parents[1]
SCHEMA_FILE = ROOT / "docs" / "schema" / f"row-{SCHEMA}.json"
GOLDEN = ROOT / "tests" / "golden" / "rows-v1.jsonl"

INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats() | st.sampled_from([-0.0, 1.0, 1e16, 5e-324, math.nan, math.inf, -math.inf])
TEXTS = st.text(max_size=8) | st.sampled_from(["nan", "inf", "-0.0", '{"$float": "nan"}', "1", ""])
NAMES = st.from_regex(r"[A-Za-z_]\w{0,6}", fullmatch=True)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: INTS,
    float: FLOATS,
    bool: st.booleans(),
    str: TEXTS,
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation that the nouns use; a new kind of field must be added here."""
    if kind in PLAIN:
        return PLAIN[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return noun(kind)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (UnionType, typing.Union):
        return st.one_of([values(arg) for arg in args])
    if origin is dict:
        return st.dictionaries(NAMES, values(args[1]), max_size=3)
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    raise AssertionError(f"no strategy for {kind}")


def noun(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    fields = {name: values(hint) for name, hint in hints.items() if name != "schema"}
    return st.builds(kind, **fields)


def same(a: Any, b: Any) -> bool:
    """Equal in every bit that matters: type, sign of zero, NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        if math.isnan(a) or math.isnan(b):  # a NaN's own sign means nothing
            return math.isnan(a) and math.isnan(b)
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, msgspec.Struct):
        names = a.__struct_fields__
        return all(same(getattr(a, n), getattr(b, n)) for n in names)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[n], b[n]) for n in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


@pytest.mark.parametrize("kind", [Case, Verdict, Timing, Counters, Machine, Roofs, Row, Strength])
def test_every_noun_survives_a_line_unchanged(kind: type[msgspec.Struct]) -> None:
    @quick
    @given(noun(kind))
    def lossless(value: Any) -> None:
        line = rows.encode(value)
        assert b"\n" not in line
        json.loads(line, parse_constant=lambda name: pytest.fail(f"JSON has no {name}"))
        assert same(rows.decode(line, kind), value)

    lossless()


def test_same_tells_signs_and_kinds_apart() -> None:
    assert not same(0.0, -0.0)
    assert not same(1, 1.0)
    assert not same(1, True)
    assert same(math.nan, math.nan)


def test_text_that_spells_a_float_stays_text() -> None:
    case = Case({"a": "nan", "b": math.nan, "c": "inf", "d": -0.0, "e": 2**63 - 1})
    back = rows.decode(rows.encode(case), Case)
    assert same(back, case)
    assert back.values["a"] == "nan"


def test_published_schema_is_current() -> None:
    published = json.loads(SCHEMA_FILE.read_text())
    assert published == json.loads(json.dumps(rows.schema())), (
        "run: python -m assay.rows > docs/schema/row-1.json; if an old reader would misread a new "
        "row, raise SCHEMA instead"
    )


VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


@pytest.mark.parametrize("kind", [Row, Machine, Strength, Roofs])
def test_encoded_rows_meet_the_published_schema(kind: type[msgspec.Struct]) -> None:
    @settings(quick, max_examples=25)
    @given(noun(kind))
    def valid(value: Any) -> None:
        VALIDATOR.validate(json.loads(rows.encode(value)))

    valid()


def test_schema_refuses_what_is_no_row() -> None:
    good = json.loads(rows.encode(row()))
    VALIDATOR.validate(good)
    for change in ({"op": 3}, {"kind": "column"}, {"bytes": {"$float": "big"}}):
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate({**good, **change})


def row(**changes: Any) -> Row:
    given = dict(op="square", variant="cpp", way="cpp", outcome="pass", word="right")
    return Row(**{**given, **changes})


def test_golden_rows_of_schema_1_are_readable_for_ever() -> None:
    read = list(rows.read(GOLDEN))
    machine, right, wrong, absent = read
    assert isinstance(machine, Machine)
    assert machine.gpus[0].capability == (9, 0)
    assert [r.word for r in (right, wrong, absent)] == ["right", "wrong value", "not run"]
    assert right.timing is not None
    assert right.timing.samples == (4.5e-05, 4.51e-05, 4.49e-05)
    assert right.label == "triton BLOCK=1024"
    assert right.case == Case({"n": 1048576, "dtype": "float32"}, 3)
    assert wrong.verdict is not None
    assert wrong.verdict.worst == math.inf
    assert wrong.verdict.worst_at == (7,)
    assert absent.counters is not None
    assert absent.counters.kernels[0].registers == 16


def test_missing_optional_and_unknown_fields_read() -> None:
    line = {"kind": "row", "op": "a", "variant": "b", "way": "cpp", "outcome": "fail"}
    line = {**line, "word": "crashed", "colour": "blue", "case": {"values": {"n": 1}, "new": [1]}}
    read = rows.decode(json.dumps(line))
    assert read.timing is None
    assert read.case == Case({"n": 1})


GOOD = rows.encode(row()).decode()
BAD_LINES = {
    "another schema": (GOOD.replace('"schema":1', '"schema":7'), "schema 7.*upgrade assay"),
    "a schema that is no number": (GOOD.replace('"schema":1', '"schema":"x"'), "schema 'x'"),
    "cut off": (GOOD[: len(GOOD) // 2], "not whole JSON.*cut off"),
    "edited": (GOOD.replace('"right"', "3"), "edited by hand"),
    "another kind": (GOOD.replace('"kind":"row"', '"kind":"cell"'), "edited by hand"),
    "a list": ("[1, 2]", "edited by hand"),
    "no float": (GOOD.replace('"bytes":null', '"bytes":{"$float":"big"}'), "edited by hand"),
    "a float that is a list": (GOOD.replace('"knobs":{}', '"knobs":{"$float":3}'), "edited"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_with_its_file_and_number(name: str, tmp_path: Path) -> None:
    line, wanted = BAD_LINES[name]
    assert line != GOOD
    file = tmp_path / "rows.jsonl"
    file.write_text(f"{GOOD}\n\n{line}\n")
    with pytest.raises(RowsError, match=wanted) as told:
        list(rows.read(file))
    assert f"{file}, line 3" in str(told.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(GOOD.replace("cpp", "c\xff", 1).encode("latin-1") + b"\n")
    with pytest.raises(RowsError, match="line 1"):
        list(rows.read(file))
    with pytest.raises(RowsError, match=r"give a rows\.jsonl"):
        list(rows.read(tmp_path / "nothing"))


def test_lines_before_a_cut_off_one_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f"{GOOD}\n{GOOD}\n{GOOD[:40]}")
    source = rows.read(file)
    assert [next(source), next(source)] == [row(), row()]
    with pytest.raises(RowsError):
        next(source)


MACHINE = Machine(
    id="m1", cpu="c", cores=2, memory_bytes=1, llc_bytes=None, system="s", versions={}
)


def test_runs_of_one_second_never_share_a_folder(tmp_path: Path) -> None:
    made = [rows.Run(tmp_path) for _ in range(5)]
    assert len({run.folder for run in made}) == 5
    for number, run in enumerate(made):
        run.write(MACHINE)
        run.write(MACHINE)
        run.write(row(reason=str(number)))
    for number, run in enumerate(made):
        machine, kept = rows.read(run.path)
        assert machine == MACHINE
        assert kept.reason == str(number)
    assert (tmp_path / ".assay" / ".gitignore").read_text() == "*\n"


def test_an_own_gitignore_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".assay").mkdir()
    (tmp_path / ".assay" / ".gitignore").write_text("runs/\n")
    rows.Run(tmp_path)
    assert (tmp_path / ".assay" / ".gitignore").read_text() == "runs/\n"


def test_runs_are_found_by_age_name_and_path(tmp_path: Path) -> None:
    first, second, third = (rows.Run(tmp_path) for _ in range(3))
    for run in (first, second, third):
        run.write(row())
    rows.Run(tmp_path)  # ended before its first line: does not count
    assert rows.find_run("last", tmp_path) == third.path
    assert rows.find_run("last~1", tmp_path) == second.path
    assert rows.find_run(first.folder.name, tmp_path) == first.path
    assert rows.find_run(str(second.path), tmp_path) == second.path
    for name in ("last~3", "last~x", "lastly", "", "nope"):
        with pytest.raises(RowsError, match=f"run {name!r}.*holds 3 runs"):
            rows.find_run(name, tmp_path)
    with pytest.raises(RowsError, match="holds 0 runs; bench first"):
        rows.find_run("last", tmp_path / "elsewhere")
