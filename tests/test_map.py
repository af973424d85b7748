"""The coverage map: granules to elements, what is said and drawn of them, over all ways."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import assay
from assay import drawing, mapping
from assay.cli import app
from assay.errors import NotRun
from assay.mapping import mapped_in
from assay.mapping.elements import elements
from assay.mapping.model import ELEMENT, Accesses, CoverageMap, Launch, Tensor, together
from assay.mapping.svg import svg
from assay.mapping.text import findings, text
from assay.report import table
from assay.simt.record import CELL
from assay.target import parse
from assay.types import Row, Verdict

HERE = Path(__file__).parent
KERNELS = HERE / "fixtures" / "maps.py"
GOLDEN = HERE / "golden" / "map.txt"
PICTURE = HERE / "golden" / "map.svg"
CASE = {"m": 4, "n": 781}


_made: dict[str, CoverageMap] = {}
"""Maps of this test process: several tests look at one."""


@pytest.fixture
def mapped(session):
    """`mapped(variant, op="square", case=..., stepped=False)` maps a kernel of fixtures/maps.py."""

    def made(variant, op="square", case=CASE, **options):
        key = repr((variant, op, case, options))
        if key not in _made:
            _made[key] = mapped_in(session, parse(f"{KERNELS}:{op}"), variant, case, **options)
        return _made[key]

    return made


# ---- granules to elements


def brute(cells, shift, start, shape, strides, size):
    """Each element by a loop over its bytes."""
    made = np.zeros(shape, ELEMENT)
    for index in np.ndindex(*shape):
        at = start + sum(i * s for i, s in zip(index, strides))
        mine = [cells[g] for g in dict.fromkeys((at + k) >> shift for k in range(size))]
        for name in ("reads", "writes", "atomics", "readers", "writers"):
            made[name][index] = max(int(cell[name]) for cell in mine)
        for first, thread, order in (
            ("first_reader", "first_reading", mine),
            ("last_reader", "last_reading", mine[::-1]),
            ("first_writer", "first_writing", mine),
            ("last_writer", "last_writing", mine[::-1]),
        ):
            who = next((cell for cell in order if cell[first]), order[0])
            made[first][index], made[thread][index] = who[first], who[thread] if who[first] else 0
        for many, first in (("readers", "first_reader"), ("writers", "first_writer")):
            if len({int(cell[first]) for cell in mine if cell[first]}) > 1:
                made[many][index] = max(made[many][index], 2)
        wrote = [bool(cell["writes"] or cell["atomics"]) for cell in mine]
        made["partly"][index] = any(wrote) and not all(wrote)
    return made


@pytest.mark.parametrize("seed", range(40))
def test_elements_are_those_of_a_loop_over_bytes(seed):
    chance = np.random.default_rng(seed)
    size, shift = int(chance.choice([1, 2, 4, 8, 16])), int(chance.integers(0, 3))
    shape = tuple(int(n) for n in chance.integers(0 if seed % 5 == 0 else 1, 5, seed % 4))
    kind = seed % 3
    steps = np.cumprod([1, *shape[::-1]])[:-1][::-1] if shape else np.array([], int)
    if kind == 1:
        steps = steps[::-1] if shape == shape[::-1] else steps * 2
    if kind == 2 and len(shape):
        steps = np.array([*steps[:-1], 0])  # expanded
    strides = [int(s) * size for s in steps]
    start = int(chance.integers(0, 3)) * size
    room = start + sum((max(n, 1) - 1) * s for n, s in zip(shape, strides)) + size
    cells = np.zeros((room >> shift) + 1, CELL)
    touched = chance.random(len(cells)) < 0.7
    for name in ("writes", "reads", "atomics"):
        cells[name] = np.where(touched, chance.integers(0, 4, len(cells)), 0)
    for count, who, names in (
        (cells["reads"], "readers", ("first_reader", "last_reader", "first_reading")),
        (cells["writes"] + cells["atomics"], "writers", ("first_writer", "last_writer", "x")),
    ):
        cells[who] = np.where(count > 0, chance.integers(1, 4, len(cells)), 0)
        for name in names[:2]:
            cells[name] = np.where(count > 0, chance.integers(1, 9, len(cells)), 0)
    for name in ("first_reading", "last_reading", "first_writing", "last_writing"):
        cells[name] = chance.integers(0, 1024, len(cells))
    got = elements(cells, shift, start, shape, strides, size, in_turn=True)
    np.testing.assert_array_equal(got, brute(cells, shift, start, shape, strides, size))
    loose = elements(cells, shift, start, shape, strides, size, in_turn=False)
    assert loose["writers"].max(initial=0) <= 2


def element(shape=(3,), **fields):
    made = np.zeros(shape, ELEMENT)
    for name, value in fields.items():
        made[name] = value
    return made


def test_launches_together_are_sums_the_first_and_the_last():
    one = element(
        writes=[1, 1, 0], writers=[1, 2, 0], first_writer=[5, 5, 0], last_writer=[5, 6, 0]
    )
    two = element(
        writes=[0, 1, 0], writers=[0, 1, 0], first_writer=[0, 9, 0], last_writer=[0, 9, 0]
    )
    total = Accesses(together([one, two], (3,)))
    assert total.write_counts.tolist() == [1, 2, 0]
    assert total.written_by.tolist() == [4, 4, -1]
    assert total.last_written_by.tolist() == [4, 8, -1]
    assert total.writers.tolist() == [1, 2, 0]


def test_one_block_in_each_of_two_launches_is_no_overlap():
    zeroed = element(writes=1, writers=1, first_writer=1, last_writer=1)
    filled = element(writes=1, writers=1, first_writer=2, last_writer=2)
    launches = {0: Accesses(zeroed), 1: Accesses(filled)}
    tensor = Tensor("output 0", "output", "float32", (3,), launches)
    assert not tensor.overlapping
    both = Accesses(element(writes=1, writers=2, first_writer=1, last_writer=2))
    assert len(Tensor("output 0", "output", "float32", (3,), {0: both}).overlapping) == 3


def test_an_element_is_partly_written_until_a_launch_writes_it_whole():
    part = element((1,), writes=1, partly=True)
    whole = element((1,), writes=1)
    assert together([part], (1,))["partly"].all()
    assert not together([part, whole], (1,))["partly"].any()


# ---- drawings


def test_every_element_is_in_one_character_and_no_gap_is_lost():
    chance = np.random.default_rng(3)
    for shape in (
        (),
        (1,),
        (63,),
        (64,),
        (65,),
        (5_000,),
        (7, 3),
        (300, 781),
        (2, 3, 40),
        (1, 5_000),
    ):
        codes = np.zeros(shape, np.int64)
        assert not set("".join(_cells(codes))) - {"0"}
        if codes.size > 1:
            gap = int(chance.integers(codes.size))
            codes.reshape(-1)[gap] = drawing.UNTOUCHED
            drawn = "".join(_cells(codes))
            assert drawn.count(".") + drawn.count("x") == 1, shape


def _cells(codes):
    picture = drawing.grid(codes)
    rows = [[drawing.character(cell, drawing.letter) for cell in row] for row in picture.cells]
    assert len(rows) <= drawing.HEIGHT
    assert all(len(row) <= drawing.WIDTH for row in rows)
    return ["".join(row).rstrip() for row in rows]


@pytest.mark.parametrize(
    ("codes", "drawn"),
    [
        ([0, 1, 61, drawing.UNTOUCHED], "011."),
        ([drawing.SEVERAL, drawing.TOGETHER, drawing.PARTLY, drawing.HOST], "#@xo"),
    ],
)
def test_a_mark_is_never_the_letter_of_a_block(codes, drawn):
    assert _cells(np.array(codes)) == [drawn]
    assert not set(drawing.LETTERS) & set(drawing.MARKS.values())


def test_a_character_for_several_elements_says_what_they_have_in_common():
    def one(*codes):
        return drawing.character(
            drawing.grid(np.array([codes]), width=1).cells[0][0], drawing.letter
        )

    assert one(3, 3) == "3"
    assert one(3, 4) == "+"
    assert one(3, drawing.UNTOUCHED) == "x"
    assert one(3, drawing.SEVERAL) == "#"
    assert one(drawing.UNTOUCHED, drawing.UNTOUCHED) == "."
    assert one(drawing.UNTOUCHED, drawing.SEVERAL) == "x"
    assert one(drawing.HOST, drawing.HOST) == "o"
    assert one(2, drawing.HOST) == "+"


# ---- kernels


@pytest.mark.parametrize(
    ("way", "stepped"),
    [
        *(("triton", False), ("numba", False), ("cuda", False)),
        pytest.param("triton", True, marks=pytest.mark.full),
        pytest.param("numba", True, marks=pytest.mark.full),
    ],
)
def test_a_kernel_that_covers_a_block_of_each_row(mapped, way, stepped):
    found = mapped(f"{way}/partial", case={"m": 2, "n": 3} if stepped and way == "numba" else CASE)
    out, x = found.tensors["output 0"], found.tensors["x"]
    rows, columns = out.shape
    covered = np.arange(columns)[None, :] < 128
    covered = np.broadcast_to(covered, out.shape)
    np.testing.assert_array_equal(out.written, covered)
    np.testing.assert_array_equal(out.written_by, np.where(covered, np.arange(rows)[:, None], -1))
    np.testing.assert_array_equal(out.write_counts, covered)
    np.testing.assert_array_equal(x.read_counts > 0, covered)
    assert len(out.never_written) == rows * max(columns - 128, 0)
    assert out.never_written[:1] == ([(0, 128)] if columns > 128 else [])
    assert x.never_read == out.never_written
    assert not out.overlapping
    assert not out.read_counts.any()
    assert out.launches.keys() == {0}


@pytest.mark.parametrize(
    ("sides", "block"),
    [((1, 1, 1000), (256, 1, 1)), ((1, 30, 50), (16, 16, 1)), ((7, 11, 13), (8, 4, 2))],
)
def test_grids_of_one_two_and_three_dimensions_cover_their_data(session, sides, block):
    names = ("d", "h", "w", "bx", "by", "bz")
    found = mapped_in(session, parse("hello"), "cuda", dict(zip(names, (*sides, *block))))
    blocks = tuple(-(-n // b) for n, b in zip(reversed(sides), block))  # rounded up in each
    assert [(one.grid, one.block) for one in found.launches] == [(blocks, block)]
    assert np.prod(blocks) * np.prod(block) >= np.prod(sides)
    z, y, x = np.indices(sides)
    bx, by, bz = block
    owner = (z // bz * blocks[1] + y // by) * blocks[0] + x // bx
    out, read = found.tensors["output 0"], found.tensors["x"]
    np.testing.assert_array_equal(out.written_by, np.broadcast_to(owner[..., None], out.shape))
    np.testing.assert_array_equal(out.write_counts, np.ones(out.shape))
    np.testing.assert_array_equal(read.read_counts, np.ones(sides))


def test_threads_are_those_that_wrote(mapped):
    out = mapped("cuda/partial").tensors["output 0"]
    np.testing.assert_array_equal(out.written_by_thread[2, :128], np.arange(128))
    assert (out.written_by_thread[2, 128:] == -1).all()
    vectors = mapped("cuda/vectors").tensors["output 0"].written_by_thread.reshape(-1)
    np.testing.assert_array_equal(vectors[:768], np.arange(768) // 4 % 64)
    assert (vectors[768:] == -1).all()


@pytest.mark.full
def test_elements_that_several_programs_write_are_named(mapped):
    found = mapped("triton/overlapping")
    out = found.tensors["output 0"]
    flat = np.arange(3124)
    several = (flat % 96 < 32) & (flat >= 96)
    np.testing.assert_array_equal(out.writers.reshape(-1), 1 + several)
    assert len(out.overlapping) == several.sum() == 1024
    assert findings(found) == ["output 0: 1,024 elements are written by several programs"]
    assert not findings(mapped("triton/partial BLOCK=1024"))


@pytest.mark.full
def test_what_no_kernel_wrote_is_told_apart(mapped):
    out = mapped("triton/zeros_first").tensors["output 0"]
    assert not out.never_written
    assert out.written_otherwise.sum() == 2612
    assert not out.written_otherwise[:, :128].any()


@pytest.mark.full
def test_launches_are_kept_apart(mapped):
    found = mapped("triton/two_launches")
    assert [one.kernel for one in found.launches] == ["columns", "shifted"]
    assert found.launches[0] == Launch("columns", (4, 1, 1), (128, 1, 1))
    out = found.tensors["output 0"]
    assert out.launches[0].write_counts.sum() == 512
    assert (out.launches[1].write_counts > 0).all()
    assert out.write_counts.sum() == 512 + out.launches[1].write_counts.sum()


@pytest.mark.full
def test_a_transposed_output_is_mapped_through_its_strides(mapped):
    out = mapped("numba/strided", "transposed", {}).tensors["output 0"]
    assert out.shape == (7, 5)
    at = np.arange(35).reshape(5, 7).T
    np.testing.assert_array_equal(out.written_by, at // 32)
    np.testing.assert_array_equal(out.written_by_thread, at % 32)


@pytest.mark.full
def test_atomic_additions_are_no_overlap(mapped):
    for stepped in (False, True):
        found = mapped("numba/atomic", "total", {}, stepped=stepped)
        out = found.tensors["output 0"]
        assert out.total.atomic_counts.tolist() == [100]
        assert out.writers.tolist() == [4]
        assert not out.overlapping
        assert not findings(found)


@pytest.mark.full
def test_memory_that_the_function_allocates_is_mapped_too(mapped):
    found = mapped("triton/own_buffer")
    assert [*found.tensors] == ["x", "output 0", "own buffer 0"]
    assert found.tensors["own buffer 0"].write_counts.all()
    assert found.tensors["output 0"].written_otherwise.all()


@pytest.mark.full
def test_without_elements_nothing_is_launched_and_nothing_missing(mapped):
    found = mapped("triton/partial", case={"m": 0})
    assert not found.launches
    assert found.tensors["output 0"].never_written == []
    assert "it has no elements" in text(found)


@pytest.mark.full
def test_other_ways_are_mapped_by_what_poison_tells(mapped):
    out = mapped("python/half").tensors["output 0"]
    assert out.written.sum() == 4 * 390
    assert out.never_written[0] == (0, 390)
    assert (out.written_by == -1).all()
    unknown = mapped("eager").tensors["output 0"]
    assert not unknown.known
    assert "not known" in text(mapped("eager"))


def test_the_interpreter_tells_offsets_and_masks(mapped):
    load, store = mapped("triton/partial BLOCK=1024", stepped=True).trace
    assert (load.what, load.tensor, load.first, load.last, load.step) == ("load", "x", 0, 780, 1)
    assert (load.lanes, load.of) == (781, 1024)
    assert (store.what, store.tensor) == ("store", "output 0")
    line = KERNELS.read_text().splitlines()[int(load.place.rpartition(":")[2]) - 1]
    assert "tl.load" in line


def test_what_compiled_code_cant_run_is_mapped_in_the_interpreter(session, monkeypatch):
    asked = mapping._asked

    def unable(session, target, variant, case, arch, stepped):
        if stepped:
            return asked(session, target, variant, case, arch, stepped)
        return {"not_run": "not checkable: wgmma at k.py:3", "uncheckable": True}, Path()

    monkeypatch.setattr(mapping, "_asked", unable)
    target = parse(f"{KERNELS}:square")
    found = mapped_in(session, target, "triton/partial", {"m": 2})
    assert found.judge == "interpreter"
    assert "not checkable: wgmma at k.py:3" in text(found)
    assert not found.tensors["output 0"].never_written
    with pytest.raises(NotRun, match="wgmma"):  # there is nothing else to run it
        mapped_in(session, target, "cuda/partial", {"m": 2})


@pytest.mark.full
def test_interpreter_and_compiled_code_agree_on_who_wrote(mapped):
    one, two = (mapped("triton/overlapping", stepped=s).tensors["output 0"] for s in (False, True))
    for name in ("written_by", "writers", "write_counts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.full
def test_a_case_that_is_too_large_is_refused_by_name(session, tmp_path):
    target = parse("square")
    with pytest.raises(NotRun, match=r"recording who touches .* smaller case: --case"):
        mapped_in(session, target, "triton BLOCK=1024", {"m": 4096, "dtype": "float32"})


# ---- words and pictures


SHOWN = (
    ("triton/partial BLOCK=128", {}),
    ("cuda/vectors", {"by": "thread"}),
    ("triton/overlapping", {}),
    ("triton/zeros_first", {"only": "output 0"}),
    ("triton/two_launches", {"only": "output 0"}),
    ("python/half", {}),
)


def page(mapped):
    return "\n\n".join(text(mapped(variant), **options) for variant, options in SHOWN) + "\n"


@pytest.mark.full
def test_the_text_is_the_golden_one(mapped):
    """After a wanted change: ASSAY_GOLDEN=1 writes it anew; read the difference."""
    got = page(mapped)
    if os.environ.get("ASSAY_GOLDEN"):
        GOLDEN.write_text(got)
    assert got == GOLDEN.read_text()
    assert max(map(len, got.splitlines())) <= 80


def test_the_picture_is_the_golden_one(mapped):
    got = svg(mapped("triton/overlapping"))
    if os.environ.get("ASSAY_GOLDEN"):
        PICTURE.write_text(got)
    assert got == PICTURE.read_text()


@pytest.mark.full
def test_a_picture_covers_each_tensor_and_escapes_its_words(mapped):
    drawn = tree.fromstring(svg(mapped("triton/partial BLOCK=128"), only="output 0"))
    boxes = [e for e in drawn if e.tag.endswith("rect")]
    assert sum(float(b.get("width")) for b in boxes if b.get("fill") == "none") > 0
    assert {b[0].text for b in boxes} == {*(f"block: {i}" for i in range(4)), "not written"}
    strange = CoverageMap("a<b", "x&y", "", "sm_80", (), {})
    assert tree.fromstring(svg(strange))[0].text == "a<b  x&y"


def command(*arguments):
    return CliRunner().invoke(app, ["map", *arguments])


@pytest.mark.full
def test_the_command_prints_draws_and_fails_where_an_output_is_not_covered(tmp_path):
    kernel, picture = f"{KERNELS}:square", tmp_path / "map.svg"
    run = command(kernel, "-k", "cuda/partial", "--case", "m=4", "--svg", str(picture))
    assert run.exit_code == 1
    assert "512 of 3,124 elements written; 2,612 not" in run.stdout
    assert "assay: output 0: 2,612 elements are not written" in run.output
    assert "\x1b" not in run.output
    assert picture.read_text().startswith("<svg")
    whole = command(kernel, "-k", "triton/partial BLOCK=1024", "--case", "m=4", "--json")
    assert whole.exit_code == 0
    said = [json.loads(line) for line in whole.stdout.splitlines()]
    assert [one["tensor"] for one in said] == ["x", "output 0"]
    assert said[1]["written_by"] == [[i, 781] for i in range(4)]
    assert said[1]["written"] == said[1]["elements"] == 3124


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--by", "warp"], "say block or thread"),
        pytest.param(
            ["--output", "7"],
            "there is no 'output 7' in this call; there are x, output 0",
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_there_is_not_is_a_mistake(arguments, said):
    run = command(
        f"{KERNELS}:square", "-k", "triton/partial BLOCK=128", "--case", "m=2", *arguments
    )
    assert said in str(run.exception)


@pytest.mark.full
def test_a_verdict_shows_which_elements_are_not_written(judge, tmp_path):
    rows = judge(parse(str(HERE / "wrong" / "partial.py")), variants=("triton*",), zoo=False)
    bad = next(row for row in rows if row.label == "triton/partial BLOCK=128")
    lines = bad.verdict.map.splitlines()
    assert bad.word == "not written"
    assert bad.reason == "2,612 of 3,124 elements of output 0, first at [0, 128]"
    assert lines[0] == "output 0 [4, 781]; a character is 16 elements"
    assert lines[2:] == [f"[{row}] {'o' * 8}{'.' * 41}" for row in range(4)]
    assert not any(row.verdict.map for row in rows if row.word == "right")


PICTURED = """
import torch, assay

op = assay.Op("f", lambda x: 2 * x, lambda make, n: (make.normal(n),), cases=assay.grid(n=[200]))

@op.variant("python/tail")
def tail(x):
    y = 2 * x
    y[150:] = 0
    return y

@op.launcher("python/over")
def over(y, x):
    y.copy_(2 * x)
    torch.as_strided(y, (210,), (1,), y.storage_offset())[200:] = 1

@op.launcher("python/nothing")
def nothing(y, x):
    pass

@op.variant("python/all")
def wrong(x):
    return 3 * x
"""


def test_a_verdict_shows_what_is_wrong_and_what_lies_outside(judge):
    rows = {row.label: row for row in judge(PICTURED, zoo=False)}
    tail = rows["python/tail"]
    assert tail.word == "wrong value"
    assert "o" * 22 + "!" * 42 in tail.verdict.map  # 128 to 149 are right
    assert tail.verdict.map.splitlines()[-1] == f"[192] {'!' * 8}"
    over = rows["python/over"]
    assert over.word == "wrote outside"
    assert over.verdict.map.splitlines()[-1] == f"[192] {'o' * 8}{'#' * 10}"
    assert set("".join(rows["python/nothing"].verdict.map.splitlines()[2:])) <= set(
        "[0123456789] ."
    )
    assert rows["python/all"].verdict.map == ""  # every element: a map shows nothing more
    assert rows["eager"].verdict.map == ""
    assert all(len(row.verdict.map.splitlines()) <= 8 for row in rows.values())


def test_the_table_shows_the_map_below_its_row():
    drawn = "output 0 [4, 781]; a character is 16 elements\n. not written\n[0] oo.."
    verdict = Verdict(word="not written", detail="2 of 4", map=drawn)
    given = {"op": "f", "variant": "triton", "way": "triton", "device": "cpu", "machine": "m"}
    row = Row(**given, outcome="fail", word="not written", reason="2 of 4", verdict=verdict)
    out = io.StringIO()
    table.show(Console(file=out, width=80, highlight=False), [row], None, timed=False)
    lines = out.getvalue().splitlines()
    at = next(i for i, line in enumerate(lines) if "not written: 2 of 4" in line)
    assert lines[at + 1 : at + 4] == [f"    {line}" for line in drawn.splitlines()]


@pytest.mark.gallery
def test_the_page_on_maps_shows_what_is_so(tmp_path):
    page = (HERE.parent / "docs" / "map.md").read_text()
    kernel, use = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```console\n\$ assay (.*?)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "square.py").write_text(kernel)
    (tmp_path / "use.py").write_text(use)
    command = [sys.executable, "-m", "assay", "map", "square.py", "-k", "triton BLOCK=128"]
    assert shown[0] == 'map square.py -k "triton BLOCK=128" --output 0'
    run = subprocess.run([*command, "--output", "0"], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout == shown[1]
    assert run.returncode == 1
    subprocess.run([sys.executable, "use.py"], cwd=tmp_path, check=True)


def test_the_public_name():
    assert assay.coverage_map.__doc__
    assert "coverage_map" in assay.__all__
