"""`assay compare`: a planted regression fails, noise does not, and nothing passes without data."""

from __future__ import annotations

import functools
import json
import math
import random
import subprocess
import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import command
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.comparison import between, judge, picture, ratios, read
from assay.comparison.model import Comparison, Entry, Pair, Side
from assay.comparison.text import text
from assay.errors import AssayError, RowsError
from assay.rows import encode
from assay.types import GPU, OUTCOMES, Case, Machine, Row, Timing, replace

GOLDEN = Path(__file__).parent / "golden" / "compare.txt"
H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
BETWEEN = between.LEAST
GATE = judge.Rules(margin=0.03, draws=200)


def machine(card: str = H100, name: str = "m") -> Machine:
    gpu = GPU(
        name=card,
        capability=(9, 0),
        multiprocessors=132,
        memory_bytes=1 << 36,
        l2_bytes=50 << 20,
        shared_bytes_per_block_optin=232448,
    )
    return Machine(
        id=name,
        cpu="A CPU",
        cores=2,
        memory_bytes=1 << 34,
        llc_bytes=1 << 25,
        system="Linux",
        versions={},
        gpus=(gpu,),
    )


def white(seed: int, seconds: float, n: int = 64, noise: float = 0.01) -> tuple[float, ...]:
    rng = np.random.default_rng(seed)
    return tuple(float(x) for x in seconds * np.exp(noise * rng.standard_normal(n)))


def timing(samples: tuple[float, ...], schedule: str, **more: Any) -> Timing:
    conditions = {"method": "events", "cache": "cold L2", **more}
    ordered = sorted(samples)
    return Timing(
        samples=samples,
        rounds=tuple(range(len(samples))),
        schedule=schedule,
        median=float(np.median(samples)),
        low=ordered[0],
        high=ordered[-1],
        **conditions,
    )


def row(
    seconds: float = 1e-5,
    seed: int = 0,
    *,
    variant: str = "triton",
    n: int = 1024,
    word: str = "right",
    schedule: str = "",
    noise: float = 0.01,
    **more: Any,
) -> Row:
    conditions = {k: more.pop(k) for k in ("method", "cache", "threads", "steady") if k in more}
    made = timing(white(seed, seconds, noise=noise), schedule or f"s{seed}", **conditions)
    return Row(
        op="square",
        variant=variant,
        way=variant,
        case=Case({"n": n, "dtype": "float32"}),
        device="cuda:0",
        machine=more.pop("machine", "m"),
        outcome=OUTCOMES[word],
        word=word,
        timing=made if word == "right" else None,
        **more,
    )


def side(name: str, *rows: Row, card: str = H100) -> Side:
    return Side(name, tuple(Entry(r, card) for r in rows))


def compared(a: Side | list[Row], b: Side | list[Row], **rules: Any) -> Comparison:
    a, b = (s if isinstance(s, Side) else side(n, *s) for n, s in (("a", a), ("b", b)))
    return judge.compare(a, b, replace_rules(**rules))


def replace_rules(**rules: Any) -> judge.Rules:
    return judge.Rules(**{"margin": 0.03, "draws": 200, **rules})


def only(found: Comparison) -> Pair:
    (pair,) = found.pairs
    return pair


# The arithmetic


@pytest.mark.parametrize(
    ("share", "freedom", "t"),
    [
        (0.95, 1, 12.706),
        (0.95, 2, 4.303),
        (0.95, 30, 2.042),
        (0.999, 2, 31.599),
        (0.999, 4, 8.610),
        (0.999, 5, 6.869),
    ],
)
def test_students_t_is_that_of_the_tables(share: float, freedom: int, t: float) -> None:
    assert ratios.student(share, freedom) == pytest.approx(t, abs=6e-4)


def simulated(rng: np.random.Generator, kind: str, seconds: float) -> tuple[float, ...]:
    """One process: what it changes, and noise of a kind."""
    n = 40
    noise = 0.02 * rng.standard_normal(n)
    if kind == "resembling":
        for i in range(1, n):
            noise[i] = 0.8 * noise[i - 1] + 0.6 * noise[i]
    if kind == "two modes":
        noise += 0.1 * (rng.random(n) < 0.1)
    if kind == "outliers":
        noise += (rng.random(n) < 0.02) * rng.exponential(1.0, n)
    return tuple(float(x) for x in seconds * np.exp(noise + 0.003 * rng.standard_normal()))


def series(rng: np.random.Generator, kind: str, count: int, seconds: float, name: str) -> list:
    made = [simulated(rng, kind, seconds) for _ in range(count)]
    return [ratios.Series(s, tuple(range(len(s))), f"{name}{i}") for i, s in enumerate(made)]


@pytest.mark.parametrize("kind", ["white", "resembling", "two modes", "outliers"])
@pytest.mark.parametrize("count", [1, 3])
def test_noise_alone_is_never_called_slower(kind: str, count: int) -> None:
    """1,200 A/A comparisons in all (150 for each parameter), at the smallest margin there is."""
    rng = np.random.default_rng(len(kind) * count)
    words = []
    for _ in range(150):
        a, b = (series(rng, kind, count, 1e-5, name) for name in "ab")
        found = ratios.estimate(a, b, BETWEEN, 60)
        assert isinstance(found, ratios.Estimate)
        words.append(ratios.verdict(found, 0.005))
    assert set(words) <= {"same", "cannot tell"}


@pytest.mark.gallery
def test_noise_alone_is_called_once_in_a_thousand_and_never_beyond_3_percent() -> None:
    """18,000 comparisons, as docs/compare.md tells of them."""
    called = 0
    for kind in ("white", "resembling", "two modes", "outliers"):
        for count in (1, 3, 5):
            rng = np.random.default_rng(99 + count)
            for _ in range(1500):
                a, b = (series(rng, kind, count, 1e-5, name) for name in "ab")
                found = ratios.estimate(a, b, BETWEEN, 60)
                assert isinstance(found, ratios.Estimate)
                called += ratios.verdict(found, 0.005) == "slower"
                assert ratios.verdict(found, 0.03) in ("same", "cannot tell")
    assert called <= 18


def test_intervals_of_noise_hold_one_19_times_in_20() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        a, b = (series(rng, "white", 3, 1e-5, name) for name in "ab")
        found = ratios.estimate(a, b, BETWEEN, 60)
        assert isinstance(found, ratios.Estimate)
        low, _, high = found.shown
        held += low <= 1 <= high
    assert held >= 184


@pytest.mark.parametrize("count", [1, 5])
def test_a_fifth_slower_is_called_and_so_is_a_fifth_faster(count: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        a, b = series(rng, "white", count, 1e-5, "a"), series(rng, "white", count, 1.2e-5, "b")
        slower, faster = ratios.estimate(a, b, BETWEEN, 60), ratios.estimate(b, a, BETWEEN, 60)
        assert isinstance(slower, ratios.Estimate)
        assert isinstance(faster, ratios.Estimate)
        assert ratios.verdict(slower, 0.03) == "slower"
        assert ratios.verdict(faster, 0.03) == "faster"
        assert slower.seen(0.03) < 0.2


def test_what_it_could_see_is_called_99_times_in_100() -> None:
    """B made slower by just that, with all its noise."""
    rng, calls = np.random.default_rng(11), 0
    for _ in range(200):
        a, b = (series(rng, "white", 1, 1e-5, name) for name in "ab")
        found = ratios.estimate(a, b, BETWEEN, 60)
        assert isinstance(found, ratios.Estimate)
        times = 1 + found.seen(0.005)
        slower = [replace_samples(one, times) for one in b]
        again = ratios.estimate(a, slower, BETWEEN, 60)
        assert isinstance(again, ratios.Estimate)
        calls += ratios.verdict(again, 0.005) == "slower"
    assert calls >= 194


def replace_samples(one: ratios.Series, times: float) -> ratios.Series:
    return ratios.Series(tuple(times * s for s in one.samples), one.rounds, one.schedule)


def test_one_process_a_side_claims_less_than_the_same_samples_in_one_schedule() -> None:
    a, b = white(1, 1e-5, 400, 0.001), white(2, 1.008e-5, 400, 0.001)
    rounds = tuple(range(400))
    apart = ratios.estimate(
        [ratios.Series(a, rounds, "x")], [ratios.Series(b, rounds, "y")], BETWEEN
    )
    together = ratios.estimate(
        [ratios.Series(a, rounds, "x")], [ratios.Series(b, rounds, "x")], BETWEEN
    )
    assert isinstance(apart, ratios.Estimate)
    assert isinstance(together, ratios.Estimate)
    assert ratios.verdict(apart, 0.005) == "cannot tell"
    assert ratios.verdict(together, 0.005) == "slower"


def test_processes_that_differ_widen_the_interval_whatever_their_samples_say() -> None:
    def processes(name: str, *seconds: float) -> list[ratios.Series]:
        made = [white(i, s, 200, 0.0005) for i, s in enumerate(seconds)]
        return [ratios.Series(s, tuple(range(200)), f"{name}{i}") for i, s in enumerate(made)]

    b = processes("b", 1.05e-5, 1.05e-5, 1.05e-5)
    steady = ratios.estimate(processes("a", 1e-5, 1e-5, 1e-5), b, BETWEEN)
    uneven = ratios.estimate(processes("a", 1e-5, 1.04e-5, 0.96e-5), b, BETWEEN)
    assert isinstance(steady, ratios.Estimate)
    assert isinstance(uneven, ratios.Estimate)
    assert ratios.verdict(steady, 0.03) == "slower"
    assert ratios.verdict(uneven, 0.03) == "cannot tell"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(1e-7, 1e-2), min_size=6, max_size=40),
    st.lists(st.floats(1e-7, 1e-2), min_size=6, max_size=40),
)
def test_turning_the_sides_round_turns_the_ratio_round(a: list[float], b: list[float]) -> None:
    one = ratios.Series(tuple(a), tuple(range(len(a))), "a")
    other = ratios.Series(tuple(b), tuple(range(len(b))), "b")
    there, back = (ratios.estimate([x], [y], BETWEEN, 40) for x, y in ((one, other), (other, one)))
    assert isinstance(there, ratios.Estimate)
    assert isinstance(back, ratios.Estimate)
    low, middle, high = there.shown
    assert low <= middle <= high
    assert there.middle == pytest.approx(-back.middle)
    assert (there.below, there.above) == pytest.approx((back.above, back.below))


def test_two_processes_that_disagree_widely_exclude_nothing() -> None:
    """Student's t of one degree of freedom at 99.9 % is 637: beyond what a float holds."""
    a = [row(1e-5, 1), row(1e-1, 2)]
    found = compared(a, [row(1e-5, 3), row(1e-5, 4)])
    assert (only(found).word, only(found).seen) == ("cannot tell", math.inf)
    assert found.summary.exit_code == judge.UNDECIDED
    assert "sees no less than 10 times" in text(found)
    assert xml.etree.ElementTree.fromstring(picture.svg(found)).findall(".//*")
    assert b'"$float":"inf"' in encode(only(found))


def test_few_samples_give_no_verdict() -> None:
    short = row()
    assert short.timing
    cut = replace(short.timing, samples=short.timing.samples[:5], rounds=(0, 1, 2, 3, 4))
    found = compared([replace(short, timing=cut)], [row(2e-5, 1)])
    assert (only(found).word, only(found).ratio) == ("cannot tell", None)
    assert "5 samples" in only(found).reason
    assert found.summary.exit_code == judge.UNDECIDED


# Verdicts and exit codes


def test_a_regression_fails_and_the_same_rows_pass() -> None:
    a, b = row(1e-5, 1), row(1.2e-5, 2)
    found = compared([a], [b])
    assert only(found).word == "slower"
    assert only(found).ratio == pytest.approx(1.2, rel=0.02)
    assert found.summary.exit_code == judge.FAILED
    same = compared([a], [a])
    assert (only(same).word, only(same).ratio) == ("same", 1.0)
    assert "the very same samples on both sides" in only(same).notes
    assert same.summary.exit_code == judge.PASSED


def test_a_gate_asks_only_whether_it_is_slower() -> None:
    """A little faster, by less than the margin and with an interval beyond it: nobody can tell
    faster from same, and it is no regression for all that."""
    found = compared([row(1e-5, 1)], [row(0.975e-5, 2)])
    assert only(found).word == "cannot tell"
    assert found.summary.exit_code == judge.PASSED


def test_what_may_be_slower_does_not_pass_unless_allowed() -> None:
    a, b = [row(1e-5, 1, noise=0.2)], [row(1e-5, 2, noise=0.2)]
    assert compared(a, b).summary.exit_code == judge.UNDECIDED
    allowed = compared(a, b, allowed=("cannot-tell",))
    assert allowed.summary.exit_code == judge.PASSED
    assert "--allow cannot-tell" in text(allowed)


def test_what_became_wrong_has_no_number_and_fails() -> None:
    found = compared([row()], [row(word="wrong value", reason="off by one")])
    assert (only(found).word, only(found).ratio) == ("wrong", None)
    assert "off by one" in text(found)
    assert found.summary.exit_code == judge.FAILED


@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        ([row(1e-5, 1)], [row(word="not run", reason="no GPU")], "no number"),
        ([row(word="not run", reason="no GPU")], [row(1e-5, 1)], "no number"),
        ([row(1e-5, 1), row(1e-5, 2, n=7)], [row(1e-5, 3)], "only in A"),
    ],
)
def test_a_gate_never_passes_for_lack_of_data(a: list[Row], b: list[Row], word: str) -> None:
    same = row(1e-5, 9, n=9)
    found = compared([*a, same], [*b, same])
    assert word in found.summary.counts
    assert found.summary.exit_code == judge.INVALID
    assert compared([*a, same], [*b, same], allowed=("missing",)).summary.exit_code in (0, 4)


def test_nothing_to_compare_is_not_a_pass_even_if_allowed() -> None:
    for a, b in (([], []), ([row(1e-5)], []), ([row(word="not run")], [row(word="not run")])):
        found = compared(a, b, allowed=("missing", "cannot-tell"))
        assert found.summary.exit_code == judge.INVALID
        assert "nothing" in text(found)


def test_a_new_kernel_is_listed_and_lets_the_gate_pass() -> None:
    same = row(1e-5, 1)
    found = compared([same], [same, row(1e-5, 2, variant="cuda")])
    assert found.summary.counts == {"same": 1, "only in B": 1}
    assert "only in B: square cuda n=1024 dtype=float32" in text(found)
    assert found.summary.exit_code == judge.PASSED


@pytest.mark.parametrize(
    ("name", "b"),
    [
        ("card", side("b", row(1e-5, 2, machine="m2"), card=H200)),
        ("method", side("b", row(1e-5, 2, method="wall"))),
        ("cache", side("b", row(1e-5, 2, cache="hot"))),
        ("precision", side("b", row(1e-5, 2, precision="tf32"))),
        ("threads", side("b", row(1e-5, 2, threads=8))),
    ],
)
def test_other_conditions_are_refused_unless_named(name: str, b: Side) -> None:
    a = side("a", row(1e-5, 1))
    refused = compared(a, b)
    assert (only(refused).word, only(refused).ratio) == ("not comparable", None)
    assert only(refused).reason.startswith(f"{name}: A ")
    assert refused.summary.exit_code == judge.INVALID
    other = next(c for c in ("card", "method") if c != name)
    assert compared(a, b, across=(other,)).summary.exit_code == judge.INVALID
    told = compared(a, b, across=(name,))
    assert only(told).ratio is not None
    assert list(told.summary.across) == [name]
    assert f"compared across {name}" in " ".join(text(told).split())


def test_an_unknown_card_is_the_same_only_on_the_same_machine() -> None:
    a = side("a", row(1e-5, 1), card="unknown")
    b = replace(row(1e-5, 2), machine="other")
    assert only(compared(a, side("b", row(1e-5, 2), card="unknown"))).ratio is not None
    found = only(compared(a, side("b", b, card="unknown")))
    assert found.word == "not comparable"
    assert "give the kept run" in found.reason
    known = side("b", row(1e-5, 2), card=H100)  # a kept run of the machine whose rows A has
    assert only(compared(a, known)).ratio is not None


def test_the_mean_has_an_interval_and_the_worst_case_and_losses_are_told() -> None:
    sizes = (1, 2, 3, 4)
    a = [row(1e-5, s, n=s) for s in sizes]
    b = [row(1e-5 * (1.3 if s == 3 else 0.9), 10 + s, n=s) for s in sizes]
    said = compared(a, b).summary
    expected = math.exp((math.log(1.3) + 3 * math.log(0.9)) / 4)
    assert said.ratio == pytest.approx(expected, rel=0.01)
    assert said.low is not None
    assert said.high is not None
    assert said.low < said.ratio < said.high
    assert said.worst == "square triton n=3 dtype=float32"
    assert said.counts == {"slower": 1, "faster": 3}


def test_the_mean_over_cases_keeps_what_a_process_does_to_all_of_them() -> None:
    """Averaging over cases does not make processes agree."""
    shifts = (0.97, 1.0, 1.03)
    a, b = (
        [row(1e-5 * f, 100 * i + n, n=n, schedule=f"{s}{i}", noise=0.001)
         for i, f in enumerate(shifts) for n in range(1, 9)]
        for s in "ab"
    )  # fmt: skip
    said = compared(a, b).summary
    assert said.low is not None
    assert said.high is not None
    assert said.high / said.low > 1.04


# What differs between processes


def bench(schedule: str, slower: float, kernel: float, seed: int, **more: Any) -> tuple[Row, Row]:
    """eager and a kernel in one process that does everything `slower`."""
    eager = row(2e-5 * slower, seed, variant="eager", schedule=schedule, **more)
    return eager, row(1e-5 * slower * kernel, seed + 1, schedule=schedule, **more)


def word_of(found: Comparison, label: str = "triton") -> str:
    return next(pair.word for pair in found.pairs if pair.label == label)


@pytest.mark.parametrize("method", ["wall", "events"])
def test_a_machine_that_was_slower_meanwhile_is_no_verdict_on_a_kernel(method: str) -> None:
    """As seen: a fifth more work, benched while the machine was 40 % faster than before."""
    before = bench("x", 1.4, 1.0, 1, method=method)
    found = compared([*before], [*bench("y", 1.0, 1.2, 5, method=method)])
    assert word_of(found) == word_of(found, "eager") == "cannot tell"
    assert found.summary.exit_code == judge.UNDECIDED
    alike = compared([*before], [*bench("z", 1.4, 1.2, 9, method=method)])
    assert word_of(alike) == "slower"
    assert "eager beside it: " in text(alike)


def test_on_a_cpu_one_process_a_side_without_eager_says_little() -> None:
    a, b, c = (row(1e-5 * f, i, method="wall") for i, f in enumerate((1.0, 1.5, 3.0)))
    found = compared([a], [b])
    assert only(found).word == "cannot tell"
    assert "no eager beside it" in text(found)
    assert only(compared([a], [c])).word == "slower"


def test_another_clock_is_no_verdict_on_a_kernel() -> None:
    def clocked(seconds: float, seed: int, hertz: float) -> Row:
        made = row(seconds, seed)
        return replace(made, timing=replace(made.timing, clock_hz=(hertz, hertz)))

    a, fast, slow = clocked(1e-5, 1, 1.98e9), clocked(1.2e-5, 2, 1.98e9), clocked(1.2e-5, 2, 1.6e9)
    assert only(compared([a], [fast])).word == "slower"
    assert only(compared([a], [slow])).word == "cannot tell"


# What is shown


def golden() -> Comparison:
    label = {"BLOCK": 1024}
    a = [row(4.5e-5, 1, n=1 << 20), row(4.5e-5, 2, variant="cuda/vectorised", knobs=label)]
    a += [row(9e-6, 3, variant="eager", noise=0.05), row(7e-6, 4, variant="numba", n=7)]
    a += [row(1e-5, 8, n=3)]
    b = [row(5.4e-5, 11, n=1 << 20), row(4.5e-5, 12, variant="cuda/vectorised", knobs=label)]
    b += [row(9e-6, 13, variant="eager", noise=0.05, steady="not steady: 9 us, then 9.4 us")]
    b += [row(word="not written", variant="triton", n=3, reason="2,612 of 3,124 elements")]
    b += [row(7e-6, 14, variant="cpp", n=7)]
    return compared(side("before.jsonl", *a), side("after.jsonl", *b))


def test_the_page_is_the_golden_one() -> None:
    assert text(golden()) + "\n" == GOLDEN.read_text()


def test_no_line_is_wider_than_80_columns() -> None:
    name = "cuda/with_a_very_long_name_indeed"
    long = [row(1.0, 1, variant=name), row(1.0, 3, variant=name, n=2, method="wall")]
    other = [row(1234.5, 2, variant=name), row(1.0, 4, variant=name, n=2)]
    page = text(compared(side("x" * 60, *long), side("y" * 60, *other)))
    assert max(map(len, page.splitlines())) <= 80


def test_a_point_stands_where_its_ratio_is() -> None:
    at = picture.axis([(0.9, 1.0, 1.1), (1.9, 2.0, 2.1)], 0.03)
    middle = picture.WIDTH // 2
    assert picture.line(at, 0.99, 1.0, 1.01, 0.03)[middle] == "o"
    right = picture.line(at, 1.9, 2.0, 2.1, 0.03)
    assert right.index("o") > middle
    assert right[middle] == "|"
    far = picture.line(at, 0.0, 1.0, math.inf, 0.03)
    assert (far[0], far[-1]) == ("<", ">")


def test_the_drawing_is_xml_with_a_line_a_pair() -> None:
    found = golden()
    root = xml.etree.ElementTree.fromstring(picture.svg(found))
    dots = root.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 1 + sum(pair.ratio is not None for pair in found.pairs)


# Other programs' files


def written(path: Path, *nouns: Any) -> Path:
    path.write_bytes(b"".join(encode(noun) + b"\n" for noun in nouns))
    return path


def test_pytest_benchmark_there_and_back_loses_only_what_is_said(tmp_path: Path) -> None:
    given = [row(1e-5, 1, knobs={"BLOCK": 256}), row(word="wrong value"), row(2e-5, 2, n=5)]
    nouns = [machine(), *given]
    form = read.FORMATS["pytest-benchmark"]
    assert form.save(nouns, tmp_path / "p.json") == 2
    whole = json.loads((tmp_path / "p.json").read_text())
    assert whole["benchmarks"][0]["stats"]["median"] == pytest.approx(1e-5, rel=0.01)
    back = read.side(str(tmp_path / "p.json"))
    assert [entry.row for entry in back.entries] == [given[0], given[2]]
    assert {entry.card for entry in back.entries} == {H100}
    assert any("rows without a time" in said for said in form.LOST)
    direct = read.side(str(written(tmp_path / "r.jsonl", machine(), given[0], given[2])))
    assert judge.compare(direct, back, GATE).summary.exit_code == judge.PASSED
    assert list(read.nouns(str(tmp_path / "p.json"))) == [machine(), given[0], given[2]]


def test_nvbench_there_and_back_loses_only_what_is_said(tmp_path: Path) -> None:
    given = [row(1e-5, 1, knobs={"BLOCK": 256}), replace(row(1e-3, 3), device="cpu")]
    form = read.FORMATS["nvbench"]
    assert form.save([machine(), *given], tmp_path / "n.json") == 1
    (entry,) = read.side(str(tmp_path / "n.json")).entries
    assert entry.card == H100
    assert entry.row.timing
    assert given[0].timing
    assert entry.row.timing.samples == pytest.approx(given[0].timing.samples, rel=1e-7)
    whole = replace(entry.row, timing=given[0].timing)
    assert whole == given[0]
    (tmp_path / "n.json-bin" / "0.bin").write_bytes(b"\0" * 8)
    with pytest.raises(RowsError, match="holds 2 samples and should hold 64"):
        read.side(str(tmp_path / "n.json"))


FOREIGN_PYTEST: dict[str, Any] = {
    "machine_info": {"cpu": {"brand_raw": "A CPU", "count": 2}},
    "commit_info": {},
    "benchmarks": [
        {
            "group": None,
            "name": "test_it[10]",
            "fullname": "tests/test_it.py::test_it[10]",
            "params": {"n": 10},
            "param": "10",
            "extra_info": {},
            "options": {"timer": "perf_counter"},
            "stats": {"iterations": 3, "data": list(white(1, 1e-3))},
        }
    ],
    "datetime": "2026-01-01T00:00:00",
    "version": "5.1.0",
}


def test_a_file_that_pytest_benchmark_wrote_is_compared_only_if_told(tmp_path: Path) -> None:
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text(json.dumps(FOREIGN_PYTEST))
    slower = json.loads(json.dumps(FOREIGN_PYTEST))
    slower["benchmarks"][0]["stats"]["data"] = list(white(2, 3e-3))
    after.write_text(json.dumps(slower))
    a, b = (read.side(str(path)) for path in (before, after))
    assert a.entries[0].card == "A CPU, 2 cores"
    assert a.entries[0].row.case.values == {"n": 10}
    refused = judge.compare(a, b, GATE)
    assert only(refused).word == "no number"
    assert "Assay judged none of it" in only(refused).reason
    told = compared(a, b, allowed=("unjudged",))
    assert only(told).word == "slower"
    assert "A was not judged" in only(told).notes


def test_files_without_samples_say_so_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    bare = json.loads(json.dumps(FOREIGN_PYTEST))
    del bare["benchmarks"][0]["stats"]["data"]
    path.write_text(json.dumps(bare))
    (entry,) = read.side(str(path)).entries
    assert "--benchmark-save-data" in entry.row.not_timed
    path.write_text('{"benchmarks": [{}], "machine_info": {}}')
    with pytest.raises(RowsError, match="lacks 'stats'"):
        read.side(str(path))
    path.write_text('{"what": 1}')
    with pytest.raises(RowsError, match="its keys are what"):
        read.side(str(path))


def test_a_file_that_nvbench_wrote_is_read_with_its_axes(tmp_path: Path) -> None:
    samples = np.asarray(white(1, 1e-5), "<f4")
    (tmp_path / "n.json-bin").mkdir()
    (tmp_path / "n.json-bin" / "0.bin").write_bytes(samples.tobytes())

    def value(name: str, kind: str, said: str) -> dict[str, str]:
        return {"name": name, "type": kind, "value": said}

    file = [value("filename", "string", "n.json-bin/0.bin"), value("size", "int64", "64")]
    state = {
        "device": 0,
        "axis_values": [value("Size", "int64", "256"), value("T", "string", "I32")],
        "summaries": [{"tag": "nv/json/bin:nv/cold/sample_times", "data": file}],
        "is_skipped": False,
    }
    skipped = {"device": 0, "axis_values": None, "summaries": None, "is_skipped": True}
    states = [state, {**skipped, "skip_reason": "too large"}]
    whole = {
        "devices": [{"id": 0, "name": H200}],
        "benchmarks": [{"name": "copy", "states": states}],
    }
    (tmp_path / "n.json").write_text(json.dumps(whole))
    first, second = read.side(str(tmp_path / "n.json")).entries
    assert (first.card, first.row.op) == (H200, "copy")
    assert first.row.case.values == {"Size": 256, "T": "I32"}
    assert first.row.timing
    assert first.row.timing.samples == tuple(float(x) for x in samples)
    assert second.row.not_timed == "skipped: too large"


# The command, on the CPU


KERNEL = '''
"""Sines, as often as is asked for; so few that torch computes them in one thread."""
import torch
import assay

op = assay.Op("sines", lambda x: torch.sin(x), lambda make, n: (make.normal(n),),
              cases=assay.grid(n=[20_000]))

def worked(x, times):
    for _ in range(times):
        y = torch.sin(x)
    return y

@op.variant("eager/work")
def work(x):
    return worked(x, {times})

@op.variant("eager/more")
def more(x):
    return worked(x, 12)
'''


assay = functools.partial(command.assay, NO_COLOR="1")


@pytest.mark.gallery
def test_a_kernel_with_a_fifth_more_work_fails_the_gate(
    judge: Callable[..., list[Row]], tmp_path: Path
) -> None:
    """Real samples of ten and of twelve sines, timed in one schedule. It never passes; where the
    machine was so busy that nobody can tell (4), it is sampled again."""
    for _ in range(5):
        both = ("eager/work", "eager/more")
        rows = judge(KERNEL.format(times=10), timed=True, variants=both, budget=1.0)
        ten, twelve = (next(r for r in rows if r.variant == name) for name in both)
        for row in (ten, twelve):
            assert row.timing, (row.variant, row.word, row.reason, row.not_timed)
        written(tmp_path / "a.jsonl", machine(), replace(ten, machine="m"))
        written(tmp_path / "b.jsonl", machine(), replace(twelve, machine="m", variant=ten.variant))
        slower = assay(tmp_path, "compare", "a.jsonl", "b.jsonl", "--fail-slower", "3%")
        assert slower.returncode in (1, 4), slower.stdout + slower.stderr
        if slower.returncode == 1:
            break
    assert slower.returncode == 1, slower.stdout
    assert "1 slower" in slower.stdout
    assert max(map(len, slower.stdout.splitlines())) <= 80
    same = assay(tmp_path, "compare", "a.jsonl", "a.jsonl", "--fail-slower", "3%", "--json")
    assert same.returncode == 0, same.stdout
    pair, summary = (json.loads(line) for line in same.stdout.splitlines())
    assert (pair["word"], summary["exit_code"]) == ("same", 0)


@pytest.mark.gallery
def test_more_work_never_passes_between_two_benches(tmp_path: Path) -> None:
    """Two benches, a file each. In which of them the machine was busier nobody knows."""
    for name, times in (("ten", 10), ("twelve", 12), ("thirty", 30)):
        (tmp_path / "mine.py").write_text(KERNEL.format(times=times))
        words = ("bench", "mine.py", "-k", "eager*", "--budget", "2s", "--json")
        done = assay(tmp_path, *words, "--device", "cpu")
        assert done.returncode == 0, done.stderr
        (tmp_path / f"{name}.jsonl").write_text(done.stdout)
    gate = ("--fail-slower", "3%")
    assert assay(tmp_path, "compare", "ten.jsonl", "twelve.jsonl", *gate).returncode in (1, 4)
    assert assay(tmp_path, "compare", "ten.jsonl", "thirty.jsonl", *gate).returncode in (1, 4)
    assert assay(tmp_path, "compare", "ten.jsonl", "ten.jsonl", *gate).returncode == 0


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.gallery
def test_a_revision_is_compared_with_the_working_tree(tmp_path: Path) -> None:
    """The file's neighbour comes from the same revision; both kept runs give the verdict again."""
    folder = tmp_path / "sub"
    folder.mkdir()
    cases = KERNEL.format(times=1).replace("n=[20_000]", "n=[1000, SIZE]")
    (folder / "mine.py").write_text(f"from neighbour import SIZE\n{cases}")
    (folder / "neighbour.py").write_text("SIZE = 10\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "ten")
    (folder / "neighbour.py").write_text("SIZE = 20\n")
    words = ("compare", "HEAD:mine.py", "mine.py", "-k", "eager/work", "--budget", "50ms")
    done = assay(folder, *words, "--device", "cpu", "--processes", "2", "--json")
    assert done.returncode in (1, 3), done.stdout + done.stderr
    assert done.stdout, done.stderr
    *pairs, _ = (json.loads(line) for line in done.stdout.splitlines())
    words_of = {pair["case"]: pair["word"] for pair in pairs}
    assert words_of.pop("n=1000") in ("same", "cannot tell", "slower", "faster")
    assert words_of == {"n=10": "only in A", "n=20": "only in B"}
    assert {tuple(p["processes"]) for p in pairs if p["case"] == "n=1000"} == {(2, 2)}
    assert "process 4 of 4" in done.stderr
    again = assay(folder, "compare", "last~1", "last", "--json")
    assert [json.loads(line) for line in again.stdout.splitlines()][:-1] == pairs


@pytest.mark.gallery
def test_two_variants_are_timed_in_one_schedule_a_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(KERNEL.format(times=1))
    words = ("compare", "mine.py", "-k", "eager/work", "-k", "eager/more", "--budget", "200ms")
    done = assay(tmp_path, *words, "--device", "cpu", "--processes", "2", "--json")
    pair = json.loads(done.stdout.splitlines()[0])
    assert (pair["label"], pair["paired"]) == ("eager/more / eager/work", True)
    assert pair["processes"] == [2, 2]
    assert pair["ratio"] > 1.5


def test_ctrl_c_while_measuring_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """130, and not the 1 of a regression."""
    from assay.commands import comparing
    from assay.comparison import measure

    def interrupted(order: Any, folder: Path, name: str, kept: Any) -> list[Any]:
        if kept.path.stat().st_size:
            raise KeyboardInterrupt
        kept.write(row())
        return [row()]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "bench", interrupted)
    given = {**GIVEN, "sides": ["k.py"], "only": ["triton", "eager"]}
    assert comparing.command(given) == 130
    assert "what was measured is kept" in capsys.readouterr().err
    assert [entry.row for entry in read.side("last").entries] == [row()]


GIVEN: dict[str, Any] = {
    **dict.fromkeys(("fail_slower", "across", "allow", "case", "dtype", "budget", "seed", "svg")),
    **{"only": None, "device": "auto", "arch": "", "quick": False, "processes": 3},
    "as_json": False,
}


def test_usage_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.commands import comparing
    from assay.comparison import measure

    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text("")
    a = str(written(tmp_path / "a.jsonl", machine(), row(1e-5, 1)))
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "none", "--allow-empty")
    for sides, more, said in (
        ([a], {}, "give two sides"),
        ([a, "k.py"], {}, "it holds no rows; compare it with itself as it was, HEAD:k.py"),
        (["HEAD~3:k.py", "k.py"], {}, "git knows no revision 'HEAD~3'"),
        (["HEAD:k.py", "k.py"], {}, "revision HEAD has no file k.py"),
        ([a, a], {"only": ["cuda"]}, "it has triton"),
        ([a], {"only": ["cuda", "triton"]}, "has no such variant; it has triton"),
        ([a, a], {"fail_slower": "3"}, "such as 3%"),
        ([a, a], {"across": ["moon"]}, "the conditions are card, method"),
        ([a, a], {"allow": ["all"]}, "it takes cannot-tell"),
    ):
        with pytest.raises(AssayError, match=said):
            comparing.command({**GIVEN, **more, "sides": sides})
    for text_ in ("a.jsonl", "k.py", "k.py:name", "package.module:name", "last~1", "softmax"):
        assert measure.revision_of(text_) is None
    with pytest.raises(AssayError, match="is there already"):
        comparing.convert(a, "nvbench", tmp_path / "k.py")
    with pytest.raises(AssayError, match="the formats are"):
        comparing.convert(a, "csv", tmp_path / "new")


def test_configurations_must_be_named_one_by_one(tmp_path: Path) -> None:
    from assay.commands.comparing import _of

    both = side("s", row(knobs={"BLOCK": 1}), row(knobs={"BLOCK": 2}), row(variant="cuda"))
    with pytest.raises(AssayError, match="2 configurations; name one: 'triton BLOCK=1'"):
        _of(both, "triton")
    assert len(_of(both, "triton BLOCK=2").entries) == 1


def test_order_of_rows_does_not_matter() -> None:
    a = [row(1e-5, s, n=s) for s in range(1, 6)]
    b = [row(1.1e-5, 10 + s, n=s) for s in range(1, 6)]
    mixed = random.Random(1).sample(b, len(b))
    assert compared(a, b).pairs == compared(a, mixed).pairs
