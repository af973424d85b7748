"""The table: a golden page of made-up rows, readable at 80 columns, without colour, in a pipe."""

from __future__ import annotations

import io
import random
from pathlib import Path

from rich.console import Console

from assay.report import strength, table
from assay.types import (
    GPU,
    OUTCOMES,
    Case,
    Compiled,
    Counters,
    Machine,
    Row,
    Share,
    Strength,
    Timing,
    Verdict,
    replace,
)

GOLDEN = Path(__file__).parent / "golden" / "table.txt"
MACHINE = Machine(
    id="m",
    cpu="A CPU",
    cores=2,
    memory_bytes=1 << 34,
    llc_bytes=1 << 25,
    system="Linux",
    versions={},
    gpus=(
        GPU(
            name="A GPU",
            capability=(9, 0),
            multiprocessors=132,
            memory_bytes=1 << 36,
            l2_bytes=50 << 20,
            shared_bytes_per_block_optin=232448,
        ),
    ),
)
CASE = Case({"n": 1 << 26, "dtype": "float32"})


NO_ROOFS = "no ceilings of cpu are known: `assay roofs --device cpu` measures them"


def timing(seconds: float, method: str = "events", schedule: str = "s") -> Timing:
    noise = random.Random(round(seconds * 1e9))
    samples = tuple(seconds * (1 + 0.002 * noise.gauss(0, 1)) for _ in range(100))
    middle = sorted(samples)[50]
    return Timing(
        samples=samples,
        rounds=tuple(range(100)),
        method=method,
        cache="cold L2" if method == "events" else "hot",
        schedule=schedule,
        median=middle,
        low=middle * 0.999,
        high=middle * 1.001,
        copy_rate=3.0e12 if method == "events" else 2.0e10,
        share=Share(value=176e-6 / middle, of="copy", roofs="r") if method == "events" else None,
        no_share="" if method == "events" else NO_ROOFS,
        clock_hz=(1.98e9, 1.98e9) if method == "events" else None,
    )


def row(variant: str, word: str = "right", **more: object) -> Row:
    given = {
        "op": "swish",
        "way": variant.split("/")[0],
        "case": CASE,
        "device": "cuda:0",
        "bytes": 8 << 26,
        "flops": 4 << 26,
        "machine": "m",
        **more,
    }
    return Row(variant=variant, outcome=OUTCOMES[word], word=word, **given)  # type: ignore[arg-type]


ROWS = [
    row("eager", timing=timing(181.0e-6), verdict=Verdict(word="right", worst=0.3)),
    row("triton", knobs={"BLOCK": 1024}, timing=timing(180.9e-6)),
    row("triton", knobs={"BLOCK": 256}, timing=timing(200e-6)),
    row(
        "triton",
        "wrote outside",
        knobs={"BLOCK": 4096},
        reason="255 values after the end of output 0",
        verdict=Verdict(word="wrote outside", advice="mask the store"),
    ),
    row("cuda/naive", timing=timing(400e-6)),
    row("cpp", timing=timing(26e-3, "wall"), device="cpu"),
    row("library/none", "not run", reason="no GPU: the vendor libraries run nowhere else"),
    row(
        "cuda/other",
        "not run",
        reason="no GPU: compiled for sm_90, not run",
        counters=Counters(
            kernels=(
                Compiled(
                    name="k",
                    arch="sm_90",
                    registers=31,
                    spill_store_bytes=0,
                    spill_load_bytes=0,
                    shared_bytes=64,
                ),
            )
        ),
    ),
    row("numba", not_timed="host-bound: in 9 of 30 samples the GPU waited for the launch"),
]


def page(rows: list[Row], width: int = 80, **options: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, **options)  # type: ignore[arg-type]
    table.show(console, rows, MACHINE, timed=True)
    return out.getvalue()


def test_the_page_is_the_golden_one() -> None:
    """After a wanted change: `python tests/test_table.py` writes it anew; read the difference."""
    assert page(ROWS) == GOLDEN.read_text()


def test_no_line_is_wider_than_the_page() -> None:
    for width in (80, 100, 120):
        assert max(map(len, page(ROWS, width).splitlines())) <= width


def test_a_pipe_gets_no_colour_codes() -> None:
    assert "\x1b" not in page(ROWS)
    assert "\x1b" in page(ROWS, force_terminal=True, color_system="standard")


def test_a_difference_within_the_spread_is_not_called_slower() -> None:
    lines = {line.label: line.note for line in table.lines(ROWS, True)}
    assert "no slower" in lines["eager"] or "fastest" in lines["eager"]
    assert "times slower" in lines["cuda/naive"]


def test_times_of_other_schedules_and_methods_are_never_compared() -> None:
    rows = [
        row("eager", timing=timing(1e-4)),
        row("triton", timing=timing(2e-4, schedule="another")),
        row("cpp", timing=timing(3e-4, "wall"), device="cpu"),
    ]
    notes = [line.note for line in table.lines(rows, True)]
    assert not any("slower" in note for note in notes)


def test_times_of_different_precision_classes_are_never_compared() -> None:
    def judged(variant: str, seconds: float, precision: str) -> Row:
        verdict = Verdict(word="right", worst=0.3, precision=precision)
        return row(variant, timing=timing(seconds), verdict=verdict)

    rows = [
        judged("eager", 3e-4, "float32"),
        judged("triton", 1e-4, "tf32"),
        judged("cuda", 2e-4, "float32"),
    ]
    notes = {line.label: line.note for line in table.lines(rows, True)}
    assert "ranked among tf32 alone" in notes["triton"]
    assert "slower" not in notes["triton"]
    assert "fastest" not in notes["triton"]
    assert "fastest; ranked among float32 alone" in notes["cuda"]
    assert "1.5 ± 0.001 times slower" in notes["eager"]


def test_accuracy_is_told_beside_eagers() -> None:
    def said(rms: float, eager_rms: float | None) -> str:
        verdict = Verdict(word="right", worst=0.4, rms=rms, eager_rms=eager_rms)
        return table.lines([row("triton", verdict=verdict)], False)[0].note

    assert said(0.1, 0.21) == (
        "right: worst 0.4 of what rounding allows, 2.1x more accurate than eager"
    )
    assert said(0.2, 0.1).endswith("2.0x less accurate than eager")
    assert said(0.0, 0.1).endswith("exact, as eager is not")
    assert said(0.1, 0.11).endswith("of what rounding allows")
    assert said(0.1, None).endswith("of what rounding allows")
    assert said(0.1, 0.0).endswith("of what rounding allows")


def test_the_strength_of_a_check_is_one_line_and_says_once_why_it_is_weak() -> None:
    strong = Strength(op="swish", dtype="float32", killed={"zeros": "n=4", "one NaN": "n=4"})
    assert strength.line(strong) == (
        "strength of swish: 2 of 2 wrong answers would be noticed (float32)"
    )
    loose = Strength(op="swish", killed={"zeros": "n=4"}, allowed=("all slightly too large",))
    assert "1 of 2" in strength.line(loose)
    assert "within what is allowed: all slightly too large" in strength.line(loose)
    weak = Strength(
        op="swish",
        alive=("zeros", "one constant"),
        suggestion="values drawn from normal() in `w` would tell them apart",
    )
    why = "zeros and one constant would pass every case; values drawn from normal() in `w`"
    assert why in strength.line(weak)
    rows = [row(f"cpp/{i}", "check too weak", reason=weak.weak) for i in range(3)]
    out = io.StringIO()
    table.show(Console(file=out, width=200), rows, MACHINE, False, [weak])
    assert out.getvalue().count("would pass every case") == 1


def test_a_share_above_what_happens_says_that_something_is_wrong() -> None:
    def reached(value: float, of: str = "copy") -> str:
        share = Share(value=value, of=of, roofs="r")
        return table.throughput(row("eager", timing=replace(timing(1e-4), share=share)))

    assert reached(0.97).endswith("97% of copy ceiling")
    assert reached(1.02).endswith("102% of copy ceiling")
    assert "104% of copy ceiling: the ceiling or the count of bytes or FLOP is wrong" in reached(
        1.04
    )
    assert reached(0.7, "empty launch").endswith("an empty launch is 70% of it")
    assert "is wrong" in reached(1.1, "empty launch")


def test_without_ceilings_no_share_is_invented_and_the_command_is_named() -> None:
    alone = replace(timing(1e-4), share=None, no_share=NO_ROOFS)
    rows = [row("eager", timing=alone), row("triton", timing=alone)]
    assert "%" not in table.throughput(rows[0])
    assert table.advice(rows) == [f"share: {NO_ROOFS}"]
    doubtful = replace(alone, no_share="ceiling doubtful: a copy is slow")
    assert table.advice([row("eager", timing=doubtful)]) == [
        "share: ceiling doubtful: a copy is slow"
    ]


if __name__ == "__main__":
    GOLDEN.write_text(page(ROWS))
