"""The gallery's targets as arithmetic over rows, and its pictures, on small rows that are made."""

from __future__ import annotations

import re
import sys
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from assay.session import Stopped
from assay.types import Case, Row, Share, Timing, replace
from benchmarks import paragraphs, pictures, targets
from benchmarks.gallery import Turns, whole
from benchmarks.sweep import SWEEP

GOLDEN = Path(__file__).parent / "golden" / "gallery.svg"


def row(op: str, variant: str, seconds: float, schedule: str = "s", **values: object) -> Row:
    """A right row with a timing of 40 samples that spread by a thousandth."""
    noise = 1 + 1e-3 * np.random.default_rng(len(variant)).standard_normal(40)
    samples = tuple(float(seconds * x) for x in noise)
    return Row(
        op=op,
        variant=variant,
        way=variant.partition("/")[0],
        case=Case({**values}),  # type: ignore[dict-item]
        device="cuda:0",
        machine="m",
        outcome="pass",
        word="right",
        bytes=1 << 29,
        timing=Timing(
            samples=samples,
            rounds=tuple(range(40)),
            schedule=schedule,
            method="cupti",
            cache="cold L2",
            median=seconds,
            low=0.999 * seconds,
            high=1.001 * seconds,
            copy_rate=3e12,
        ),
    )


def said(rows: list[Row]) -> dict[str, str]:
    """The word for each target, without what is still to come."""
    return {one.what: word.partition(" so far")[0] for one, _, _, word in targets.answers(rows)}


def test_a_part_of_the_sweep_says_so() -> None:
    """Two of the twelve cases of softmax; and the one case of a target is all of it."""
    part = [
        row("softmax", way, seconds, rows=8192, n=8192, dtype=dtype)
        for dtype in ("float32", "bfloat16")
        for way, seconds in (("cuda/held", 1e-4), ("compiled", 2e-4))
    ]
    found = {one.what: word for one, _, _, word in targets.answers(part)}
    whole = "softmax over compile, geometric mean"
    assert found[whole] == "met so far, 10 cases to come"
    assert found["softmax float32 8192 x 8192 over best torch"] == "met"
    assert found["softmax over Liger, geometric mean"] == "not measured"


SQUARE = {"rows": 8192, "n": 8192, "dtype": "bfloat16"}


@pytest.mark.parametrize(
    ("torch", "word"), [(1.9e-4, "met"), (1.7e-4, "missed"), (1.8e-4, "cannot tell")]
)
def test_a_target_is_held_against_the_fastest_peer(torch: float, word: str) -> None:
    rows = [
        row("softmax", "cuda/held", 1.0e-4, **SQUARE),
        row("softmax", "triton", 1.2e-4, **SQUARE),
        row("softmax", "eager", 3.0e-4, **SQUARE),
        row("softmax", "compiled", torch, **SQUARE),
    ]
    found = said(rows)
    assert found["softmax bfloat16 8192 x 8192 over best torch"] == word
    assert found["softmax float32 8192 x 8192 over best torch"] == "not measured"


def test_the_worst_case_is_not_hidden_by_the_mean() -> None:
    rows = []
    for n, ours in ((4096, 1.0e-4), (256, 2.2e-4)):
        values = {"rows": 32768, "n": n, "dtype": "float32"}
        rows += [
            row("softmax", "cuda/held", ours, str(n), **values),
            row("softmax", "compiled", 2.0e-4 if n == 256 else 4.0e-4, str(n), **values),
        ]
    found = said(rows)
    assert found["softmax over compile, geometric mean"] == "met"
    assert found["softmax, worst case over any peer"] == "missed"


def test_a_rate_is_held_against_the_copy_of_its_schedule() -> None:
    seconds = (1 << 29) / 3e12 / 0.96
    rows = [row("transpose", "cuda/vectorised", seconds, m=8192, n=8192, dtype="float32")]
    assert said(rows)["transpose float32 of a copy"] == "met"
    small = [targets_small(rows[0])]
    assert said(small)["transpose float32 of a copy"] == "not measured"


def targets_small(one: Row) -> Row:
    from assay.types import replace

    return replace(one, bytes=1 << 20)


def test_reading_is_held_against_the_ceiling_of_reading_alone() -> None:
    from assay.types import replace

    made = row("sum", "cuda/two_stages", 1e-3, n=1 << 28, dtype="float32")
    assert made.timing
    for of, word in (("read", "met"), ("copy", "not measured")):
        share = Share(value=0.97, of=of, roofs="r")
        shared = replace(made, timing=replace(made.timing, share=share))
        assert said([shared])["sum of reading, 2^28"] == word


def test_no_case_outside_of_the_sweep_counts() -> None:
    values = {"rows": 8192, "n": 8193, "dtype": "float32"}
    rows = [row("softmax", "cuda/held", 1e-4, **values), row("softmax", "compiled", 2e-4, **values)]
    assert set(said(rows).values()) == {"not measured"}


def test_every_target_speaks_of_cases_that_the_sweep_has() -> None:
    parts = {part.op: part for part in SWEEP}
    for target in targets.TARGETS:
        cases = [case for op in target.ops for case in parts[op].cases if target.where(case)]
        assert cases, target.what


def test_a_picture_shows_every_way_and_the_ceiling() -> None:
    rows = [
        row("softmax", variant, seconds * n, str(n), rows=64, n=n, dtype="float32")
        for n in (1, 4)
        for variant, seconds in (("cuda/held", 2e-4), ("eager", 4e-4))
    ]
    made = pictures.svg("softmax", "float32", rows, "A card")
    xml.etree.ElementTree.fromstring(made)
    for text in (">cuda<", ">eager<", "the copy beside", "A card"):
        assert text in made
    assert len(re.findall("<polyline", made)) == 3
    if "--update-golden" in sys.argv:
        GOLDEN.write_text(made)
    assert made == GOLDEN.read_text()


def test_operators_are_timed_in_order_once_all_are_judged() -> None:
    """Whoever is judged first waits for the last; what comes to nothing holds nobody up."""
    names = ["a", "b", "c", "d"]
    turns = Turns(names, time.monotonic())
    timed: list[str] = []

    def one(name: str, seconds: float) -> None:
        time.sleep(seconds)
        if name != "b":  # fails while it is judged
            turns.judged(name)
            assert not turns.judging
            timed.append(name)
            time.sleep(0.02)
            turns.judged(name)  # of a second case: it is its turn still
        turns.over(name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, names, (0.0, 0.1, 0.05, 0.0)))
    assert timed == ["a", "c", "d"]


def test_a_limit_ends_those_that_wait_for_their_turn() -> None:
    turns = Turns(["a", "b"], time.monotonic())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(turns.judged, "b")
        turns.stop()
        with pytest.raises(Stopped):
            waiting.result(5)
    assert turns.cut == {"a", "b"}
    with pytest.raises(Stopped):
        turns.take(None)  # type: ignore[arg-type]


def test_a_paragraph_says_what_is_fastest_by_which_idea_and_beside_whom() -> None:
    rows = [
        row("softmax", way, seconds, rows=8192, n=8192, dtype="float32")
        for way, seconds in (
            ("cuda/held", 1e-4),
            ("cuda/streamed", 1.1e-4),
            ("compiled", 2e-4),
            ("eager", 3e-4),
        )
    ]
    said = paragraphs.paragraph(rows)
    assert said.startswith("**softmax, rows=8192 n=8192 dtype=float32**: `cuda/held` takes 100 us")
    assert "A row lies in the registers of a warp or a block: largest value, exps and their" in said
    assert "versions take `cuda/streamed` 1.10 times as long" in said
    assert said.endswith("Others: `compiled` 2.00, `eager` 3.00 times.")
    on_cpu = [replace(one, device="cpu") for one in rows]
    assert paragraphs.paragraph(on_cpu) == "", "times of a CPU stand beside none of a GPU"
    assert paragraphs.paragraph([replace(one, bytes=1000) for one in rows]) == ""


def test_the_idea_of_a_kernel_is_what_its_file_says() -> None:
    header = (
        "// y = f(x).\n//\n// op_one, op_two   both of them,\n//                  over two lines\n"
        "// op_three  a third\n//\n// bytes   8\nop_four  not here\n"
    )
    for name, idea in (
        ("op_one", "both of them, over two lines"),
        ("op_two", "both of them, over two lines"),
        ("op_three", "a third"),
        ("op_four", ""),
        ("op", ""),
    ):
        assert paragraphs.of_header(header, name) == idea
    assert paragraphs.idea("softmax", "no/such") == ""
    assert paragraphs.idea("no_such_operator", "cuda/held") == ""


def test_a_sweep_goes_on_with_operators_that_are_not_whole() -> None:
    (part,) = (one for one in SWEEP if one.op == "transpose")
    (other,) = (one for one in SWEEP if one.op == "sum")
    rows = [row("transpose", "triton", 1e-4, **case) for case in part.cases]
    rows += [row("sum", "triton", 1e-4, **case) for case in other.cases[:-1]]
    rows += [row("sum", "eager", 1e-4, **case) for case in other.cases]  # ours is not there
    assert whole(rows) == {"transpose"}
