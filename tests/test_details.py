"""What `bench --details` prints: a golden page of made-up rows, readable at 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from assay.clock.statistics import APART, margin
from assay.report import details, table
from assay.types import Build, Case, Input, Memory, Row, Sustained, Timing, replace

GOLDEN = Path(__file__).parent / "golden" / "details.txt"
US = 1e-6

GPU = Timing(
    samples=(12.1 * US, 12.2 * US, 12.3 * US),
    rounds=(0, 1, 2),
    method="cupti",
    cache="cold L2",
    schedule="s",
    median=12.2 * US,
    low=12.1 * US,
    high=12.3 * US,
    ended="budget",
    warmup_seconds=0.21,
    warmup_calls=1533,
    first_call_seconds=0.8,
    host_seconds=6.1 * US,
    wall_seconds=25.3 * US,
    sync_seconds=4.7 * US,
    memory=Memory(allocations=2, bytes=1 << 24, peak_bytes=1 << 23, reserved_bytes=1 << 29),
    sustained=Sustained(
        by="graphs",
        seconds=5.0,
        period=13.9 * US,
        first_period=12.4 * US,
        clock_hz=(1.71e9, 1.98e9),
        watts=700.0,
        celsius=66.0,
        held=("software power cap in 9 of 10 readings",),
    ),
    period_seconds=11.8 * US,
    working_bytes=1 << 24,
    cache_bytes=50 << 20,
    inputs=(
        Input(
            name="x",
            dtype="float32",
            shape=(1024, 2048),
            stride=(2048, 1),
            low=-4.73,
            high=4.39,
            mean=0.0049,
            zeros=0.0,
        ),
        Input(name="eps", text="1e-05"),
    ),
    clock_hz=(1.98e9, 1.98e9),
    watts=(162.0, 240.0),
    celsius=(39.0, 40.0),
    hertz=(1.98e9,) * 3,
    held={"software power cap": (1,)},
    noise=0.003,
    kernels=1,
    kernel_seconds=12.2 * US,
    span_seconds=12.2 * US,
    event_seconds=12.35 * US,
    notes=("other processes used this GPU when sampling began: 77",),
)
CPU = Timing(
    samples=(2.2e-6,),
    rounds=(0,),
    method="wall",
    cache="rotated",
    schedule="s",
    median=2.2e-6,
    low=2.1e-6,
    high=2.3e-6,
    working_bytes=1 << 24,
    cache_bytes=32 << 20,
    sets=8,
    other_load=0.25,
    held={"interrupted": (0,)},
    no_period="",
    notes=("other load took 25 % of its CPUs",),
)
ROW = Row(
    op="twice",
    variant="cuda",
    way="cuda",
    case=Case({"n": 2097152}),
    device="cuda:0",
    outcome="pass",
    word="right",
    build=Build(seconds=0.3, cached=False),
    bytes=1 << 24,
    flops=1 << 21,
    timing=GPU,
)
ROWS = [
    ROW,
    replace(ROW, variant="eager", device="cpu", build=None, timing=CPU),
    replace(ROW, variant="triton", timing=None, not_timed="throttled", rejected=GPU),
    replace(ROW, variant="numba", timing=replace(GPU, period_seconds=None, no_period="it waits")),
]


def printed() -> str:
    stream = io.StringIO()
    details.show(Console(file=stream, width=80, highlight=False), ROWS)
    return stream.getvalue()


def test_the_page_is_the_golden_one() -> None:
    assert printed() == GOLDEN.read_text()


def test_it_is_readable_at_80_columns_and_tells_no_time_that_was_rejected() -> None:
    assert max(map(len, printed().splitlines())) <= 80
    assert "triton" not in printed()


def test_what_the_clock_noted_stands_below_its_case() -> None:
    found = table.conditions_of(ROWS)
    assert [(line.label, line.note) for line in found] == [
        ("note:", f"cuda, numba: {GPU.notes[0]}"),
        ("note:", f"eager: {CPU.notes[0]}"),
    ]


def test_two_clocks_of_one_gpu_claim_less_than_one() -> None:
    other = replace(GPU, method="events")
    assert margin([GPU, GPU], least=0.001) < 0.01
    assert margin([GPU, other]) == APART / GPU.median
    assert margin([replace(GPU, noise=0.05), other]) == 0.05
