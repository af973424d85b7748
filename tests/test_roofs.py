"""Ceilings: sampled by a fake clock, doubted, kept, looked up; floors and shares formed of them."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from assay import hardware
from assay.clock import floor, made
from assay.clock.floor import Work
from assay.commands import roofs as command
from assay.errors import AssayError, NotRun, RowsError
from assay.report import roofs as page
from assay.report import table
from assay.roofs import child, cpu, gpu, store
from assay.roofs.doubt import doubts
from assay.roofs.measure import measure, sizes_of
from assay.roofs.sampling import LEAST_ROUNDS, Ask, Candidate, measured
from assay.rows import decode, encode
from assay.session import Session
from assay.types import GPU, Machine, Roof, Roofs, Row, Share, replace

H100 = GPU(
    name="NVIDIA H100 80GB HBM3",
    capability=(9, 0),
    multiprocessors=132,
    memory_bytes=1 << 36,
    l2_bytes=50 << 20,
    shared_bytes_per_block_optin=232448,
    driver="580.1",
    uuid="u",
    sm_hz=1.98e9,
    memory_hz=2.619e9,
    bus_bits=5120,
)
MACHINE = Machine(
    id="m",
    cpu="A CPU",
    cores=2,
    memory_bytes=1 << 34,
    llc_bytes=1 << 25,
    system="Linux",
    versions={"torch": "2.11.0"},
    gpus=(H100,),
)


# Sampling, by a clock that we move


@dataclass
class Time:
    """Seconds that pass only while something is sampled."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Clock:
    """Samples from a given series, again and again."""

    time: Time
    series: Iterator[float]
    late: int = 0
    taken: list[float] = field(default_factory=list)

    def sample(self) -> float:
        self.taken.append(next(self.series))
        self.time.now += self.taken[-1]
        return self.taken[-1]


def noisy(middle: float, spread: float, seed: int = 1) -> Iterator[float]:
    noise = random.Random(seed)
    while True:
        yield middle * (1 + spread * noise.gauss(0, 1))


def ask(*clocks: Clock, unit: str = "B/s", work: float = 1e9) -> Ask:
    return Ask("copy", unit, work, [Candidate(f"kernel {i}", c) for i, c in enumerate(clocks)])


def test_the_fastest_of_several_kernels_is_the_ceiling_with_its_interval() -> None:
    time = Time()
    slow, fast = Clock(time, noisy(2e-3, 0.01)), Clock(time, noisy(1e-3, 0.01))
    roof = measured(ask(slow, fast), 0.5, now=time)
    assert roof.by == "kernel 1"
    assert roof.beaten == ("kernel 0",)
    assert roof.low < roof.value < roof.high
    assert roof.low <= 1e12 <= roof.high
    assert len(roof.samples) >= LEAST_ROUNDS
    assert roof.samples == tuple(fast.taken[-len(roof.samples) :])


def test_sampling_ends_when_the_interval_is_narrow_and_not_before() -> None:
    time = Time()
    quiet = measured(ask(Clock(time, noisy(1e-3, 1e-5))), 10.0, now=time)
    assert len(quiet.samples) == 16
    time = Time()
    loud = measured(ask(Clock(time, noisy(1e-3, 0.3))), 0.5, now=time)
    assert 0.5 < sum(loud.samples) < 0.6


def test_one_shot_is_never_enough() -> None:
    time = Time()
    assert len(measured(ask(Clock(time, noisy(5.0, 0.1))), 0.1, now=time).samples) == LEAST_ROUNDS


def test_a_time_is_divided_by_how_many_of_it_a_sample_holds() -> None:
    time = Time()
    roof = measured(ask(Clock(time, noisy(1e-3, 1e-5)), unit="s", work=1000), 1.0, now=time)
    assert roof.value == pytest.approx(1e-6, rel=1e-3)
    assert roof.seconds == roof.value


def test_what_happened_beside_the_samples_is_told() -> None:
    time = Time()
    hertz = itertools.cycle([1.98e9, 1.7e9])
    steps = itertools.chain([1e-3] * 12, itertools.repeat(1.2e-3))
    clock = Clock(time, steps)
    roof = measured(ask(clock), 0.03, now=time, hertz=lambda: next(hertz))
    assert roof.clock_hz == (1.7e9, 1.98e9)
    assert "not steady: 1 ms, then 1.2 ms" in roof.steady
    assert measured(ask(Clock(time, noisy(1e-3, 1e-5))), 0.1, now=time).clock_hz is None


@pytest.mark.parametrize(
    ("series", "late", "why"),
    [
        (itertools.repeat(0.0), 0, "below the timer's resolution"),
        (itertools.repeat(-1e-6), 0, "below the timer's resolution"),
        (noisy(1e-3, 0.01), 12, "launch was not hidden in 12 of"),
    ],
)
def test_what_can_not_be_believed_is_no_ceiling(
    series: Iterator[float], late: int, why: str
) -> None:
    ticks = itertools.count()
    clock = Clock(Time(), series, late)
    with pytest.raises(NotRun, match=why):
        measured(ask(clock), 12.5, now=lambda: float(next(ticks)))


def test_a_late_kernel_leaves_the_ceiling_to_the_others() -> None:
    time = Time()
    late, fine = Clock(time, noisy(1e-3, 0.01), late=99), Clock(time, noisy(2e-3, 0.01))
    roof = measured(ask(late, fine), 0.1, now=time)
    assert (roof.by, roof.beaten) == ("kernel 1", ())


# Doubt


def roof(name: str, value: float, unit: str = "B/s", **more: object) -> Roof:
    given = {"low": value, "high": value, "samples": (1.0,), "by": "k", **more}
    return Roof(name=name, unit=unit, value=value, **given)  # type: ignore[arg-type]


def copy(value: float, size: int = 1 << 30) -> Roof:
    return roof("copy", value, bytes=size, cache="cold L2")


def test_a_copy_far_below_the_data_sheet_is_doubtful() -> None:
    assert doubts([copy(3.0e12)], H100) == ""
    assert "reaches 2,900 GB/s, 0.866 of the data sheet's 3,350" in doubts([copy(2.9e12)], H100)
    assert doubts([copy(2.9e12), copy(3.0e12, 1 << 32)], H100) == "", "the best of them counts"
    assert "no copy of 1 GiB or more" in doubts([copy(3.0e12, 1 << 28)], H100)


def test_the_limit_is_that_of_the_data_sheet_not_of_the_clock() -> None:
    h200 = replace(H100, name="NVIDIA H200", memory_hz=3.201e9, bus_bits=6144, l2_bytes=60 << 20)
    assert doubts([copy(4.274e12)], h200) == ""  # 0.89 of 4.8, and 0.87 of what the clock gives
    assert "0.875" in doubts([copy(4.2e12)], h200)


def test_of_a_card_that_is_not_known_a_low_copy_is_no_reason() -> None:
    other = replace(H100, name="NVIDIA GeForce RTX 4090", capability=(8, 9))
    assert doubts([copy(1e12)], other) == ""


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("float32 FMA", 75e12, "FLOP/s"),
        ("bfloat16 matrix", 1.2e15, "FLOP/s"),
        ("tf32 matrix", 6e14, "FLOP/s"),
        ("shared memory", 40e12, "B/s"),
    ],
)
def test_a_kernel_that_beats_the_hardware_did_less_than_it_should(
    name: str, value: float, unit: str
) -> None:
    assert "did less than it should" in doubts([copy(3e12), roof(name, value, unit)], H100)
    assert doubts([copy(3e12), roof(name, 0.8 * value, unit)], H100) == ""


def test_a_cpu_that_others_use_is_doubtful() -> None:
    assert doubts([], None, 0.02) == ""
    assert doubts([], None, None) == ""
    assert "waited 30% of the time for a processor" in doubts([], None, 0.3)


# The floor: generous


SQUARE = Work(bytes=2 << 30, written=1 << 30, flops=1 << 28, kind="float32")


def test_the_floor_is_the_data_sheets_bandwidth_over_what_dram_must_move() -> None:
    found = least(SQUARE)
    assert found.bytes == (2 << 30) - (50 << 20)
    assert found.seconds == pytest.approx(found.bytes / 3.352e12, rel=1e-3)
    assert found.by == "moving 2,095,054,848 bytes at 3,352 GB/s"


def least(work: Work, gpu: GPU = H100, **more: float | None):
    given = {"cold": True, "copy_rate": None, "null_seconds": None, **more}
    found = floor.floor(work, gpu, **given)  # type: ignore[arg-type]
    assert found
    return found


@pytest.mark.parametrize(
    ("total", "written", "cold", "moved"),
    [
        (100, 0, True, 100),
        (100, 100, True, 90),  # the L2 still holds the last ten
        (100, 50, True, 90),
        (20, 10, True, 10),
        (100, 50, False, 90),  # hot: what exceeds the cache
        (10, 5, False, 0),
        (10, 99, True, 0),  # declared fewer bytes than its outputs have
    ],
)
def test_bytes_that_dram_must_move(total: int, written: int, cold: bool, moved: int) -> None:
    assert Work(total, written, None, "").dram_bytes(10, cold=cold) == moved


@given(
    total=st.integers(0, 1 << 40),
    written=st.integers(0, 1 << 40),
    cache=st.integers(0, 1 << 28),
)
def test_dram_moves_no_more_than_all_and_hot_no_more_than_cold(
    total: int, written: int, cache: int
) -> None:
    work = Work(total, written, None, "")
    cold, hot = work.dram_bytes(cache, cold=True), work.dram_bytes(cache, cold=False)
    assert cold is not None
    assert hot is not None
    assert 0 <= hot <= cold <= total


def test_arithmetic_and_an_empty_window_are_floors_too() -> None:
    product = Work(3 * 2 * 8192**2, 2 * 8192**2, 2 * 8192**3, "bfloat16")
    assert least(product).by.endswith("FLOP of bfloat16 at 1,071 TFLOP/s")
    assert least(product).seconds == pytest.approx(2 * 8192**3 / (4096 * 132 * 1.98e9))
    assert least(Work(8, 4, 1, "float32"), null_seconds=1.25e-6).by == "an empty window"


def test_float32_of_three_float16_products_is_honest() -> None:
    product = Work(3 * 4 * 8192**2, 4 * 8192**2, 2 * 8192**3, "float32")
    of_units = 2 * 8192**3 / 66.9e12
    assert least(product).seconds < 0.25 * of_units


def test_what_no_table_knows_makes_no_floor() -> None:
    work = Work(None, 0, 2 * 8192**3, "float64")
    assert floor.floor(work, H100, cold=True, copy_rate=None, null_seconds=None) is None
    unknown = replace(H100, name="?", capability=(12, 0), memory_hz=None)
    product = Work(None, 0, 10**15, "bfloat16")
    assert floor.floor(product, unknown, cold=True, copy_rate=None, null_seconds=None) is None
    assert floor.floor(SQUARE, None, cold=False, copy_rate=3e10, null_seconds=None) is None
    # Without a data sheet, the copy of the same schedule tells, generously.
    assert "3,750 GB/s" in least(SQUARE, unknown, copy_rate=3e12).by


def test_a_data_sheet_rounds_down_and_the_floor_does_not() -> None:
    sheet, generous, source = hardware.dram_rates("NVIDIA H200", 3.201e9, 6144)
    assert (sheet, source) == (4.8e12, "NVIDIA H200 data sheet: 4.8 TB/s")
    assert generous == pytest.approx(4.917e12, rel=1e-3)
    assert hardware.dram_rates("?", 1e9, 256)[0] == 2 * 1e9 * 256 / 8
    assert hardware.dram_rates("?", None, None) == (None, None, "")


# The share: strict


def roofs(*found: Roof, **more: object) -> Roofs:
    given = {"id": "r", "device": "cuda:0", "key": {}, "time": "", **more}
    return Roofs(roofs=tuple(found), **given)  # type: ignore[arg-type]


COPIES = (copy(1e12, 1 << 20), copy(2e12, 1 << 30), copy(3e12, 1 << 32))


def test_a_share_is_of_the_same_traffic_and_size() -> None:
    known = roofs(*COPIES, roof("read", 4e12, bytes=1 << 31, cache="cold L2"))
    taken = (2 << 30) / 2.5e12
    of_copy = floor.share(SQUARE, taken, "cold L2", known)
    assert of_copy
    assert of_copy.of == "copy"
    line = (1 << 30) / 2e12 + ((1 << 32) / 3e12 - (1 << 30) / 2e12) / 3
    assert of_copy.value == pytest.approx(line / taken)
    reads = floor.share(Work(1 << 31, 4, None, ""), taken, "cold L2", known)
    assert reads
    assert (reads.of, reads.value) == ("read", pytest.approx(2.5e12 / 4e12))


def test_no_share_of_another_state_of_the_cache_or_of_a_smaller_size() -> None:
    launch = roof("empty launch", 2e-6, "s")
    assert floor.share(SQUARE, 1e-3, "hot", roofs(*COPIES)) is None
    assert floor.share(SQUARE, 1e-3, "hot", roofs(*COPIES, launch)) is None
    small = Work(1 << 10, 1 << 9, 1, "float32")
    assert floor.share(small, 1e-5, "cold L2", roofs(*COPIES)) is None
    found = floor.share(small, 1e-5, "cold L2", roofs(*COPIES, launch))
    assert found
    assert (found.of, found.value) == ("empty launch", pytest.approx(0.2))


def test_arithmetic_is_held_against_its_own_class() -> None:
    known = roofs(
        *COPIES, roof("bfloat16 matrix", 7e14, "FLOP/s"), roof("tf32 matrix", 4e14, "FLOP/s")
    )
    product = Work(3 * 2 * 8192**2, 2 * 8192**2, 2 * 8192**3, "bfloat16")
    found = floor.share(product, 2 * 8192**3 / 3.5e14, "cold L2", known)
    assert found
    assert (found.of, found.value) == ("bfloat16 matrix", pytest.approx(0.5))


@settings(max_examples=50)
@given(size=st.integers(1 << 20, 1 << 34))
def test_between_two_sizes_the_ceiling_is_between_them(size: int) -> None:
    taken = floor.at_size(COPIES, size)
    assert taken is not None
    assert size / 3e12 * 0.999 <= taken <= size / 1e12 * 1.001
    more = floor.at_size(COPIES, 2 * size)
    assert more is not None
    assert more > taken


def test_a_precision_class_by_declaration_then_by_dtype() -> None:
    assert floor.kind_of("tf32", "float32") == "tf32"
    assert floor.kind_of("", "bfloat16") == "bfloat16"
    assert floor.kind_of("", "float8_e4m3fn") == "float8"


# Kept


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))

    def keep(device: str = "cuda:0", **more: object) -> Path:
        found = roofs(*COPIES, key=store.key_of(MACHINE, device), **{"device": device, **more})
        return store.save(found)

    return keep


def test_what_was_measured_is_found_again_and_the_last_one_counts(
    kept: Callable[..., Path],
) -> None:
    assert store.load(MACHINE, "cuda:0") is None
    assert store.stored(MACHINE) == []
    first = kept(id="first")
    kept(id="second")
    found = store.load(MACHINE, "cuda:0")
    assert found
    assert found.id == "second"
    assert first.is_file(), "none is overwritten"
    assert [r.id for r in store.stored(MACHINE)] == ["second"]
    assert decode(encode(found)) == found


@pytest.mark.parametrize(
    "other",
    [
        replace(MACHINE, gpus=(replace(H100, driver="590.2"),)),
        replace(MACHINE, gpus=(replace(H100, uuid="another card"),)),
        replace(MACHINE, gpus=(replace(H100, sm_hz=1.7e9),)),
        replace(MACHINE, gpus=(replace(H100, memory_hz=2.0e9),)),
        replace(MACHINE, versions={"torch": "2.12.0"}),
    ],
)
def test_another_driver_card_clock_or_torch_has_no_ceilings_yet(
    kept: Callable[..., Path], other: Machine
) -> None:
    kept()
    assert store.load(MACHINE, "cuda:0")
    assert store.load(other, "cuda:0") is None


def test_a_damaged_file_is_named_with_what_to_do(kept: Callable[..., Path]) -> None:
    path = kept()
    path.write_text(path.read_text()[:100])
    with pytest.raises(RowsError, match=rf"{path.name}.*assay roofs --again"):
        store.load(MACHINE, "cuda:0")


# The page


FULL = (
    *COPIES,
    roof("read", 5.5e12, bytes=17 << 20, cache="in cache", by="read_in_l2, 264 blocks"),
    roof("shared memory", 31e12, clock_hz=(1.98e9, 1.98e9)),
    roof("bfloat16 matrix", 7e14, "FLOP/s", shape="8192^3", clock_hz=(1.4e9, 1.755e9)),
    roof("empty launch", 2.6e-6, "s"),
)


def text(found: Roofs, *, kept: bool = False) -> str:
    out = io.StringIO()
    page.show(Console(file=out, width=80, highlight=False), found, MACHINE, kept=kept)
    return out.getvalue()


def test_the_page_says_every_ceiling_with_kernel_and_spread() -> None:
    said = text(roofs(*FULL, datasheet=3.35e12, source="a data sheet", time="2026"), kept=True)
    assert "roofs of cuda:0 · NVIDIA H100 80GB HBM3" in said
    assert "measured 2026, kept; --again measures anew" in said
    assert "0.90 of data sheet" in said
    assert said.count("of data sheet") == 2, "of the smallest, launch and cache decide"
    assert "700 TFLOP/s   ±0.0%  k; 1400-1755 MHz" in said
    assert "empty launch" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_of_doubtful_ceilings_no_percentage_is_printed() -> None:
    why = "a copy of 1 GiB and more reaches too little, for whatever reason that may be"
    said = text(roofs(*FULL, datasheet=3.35e12, doubtful=why))
    assert f"ceiling doubtful: {why}; no percentage is formed" in " ".join(said.split())
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "\n    " in said, "what goes on is set in"
    assert "of data sheet" not in said


def test_what_is_missing_is_said_with_its_reason() -> None:
    said = text(roofs(*FULL, absent={"grid sync": "no cooperative launch"}, notes=("no NVML",)))
    assert "not measured: grid sync: no cooperative launch" in said
    assert "note: no NVML" in said


# The measuring process


class Said:
    """A channel that keeps what is sent."""

    def __init__(self) -> None:
        self.messages: list[dict] = []

    def send(self, **message: object) -> None:
        self.messages.append(message)


def test_what_fails_is_absent_with_its_reason_and_the_rest_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> Ask:
        raise NotRun("it takes 8 bytes, and 4 are free")

    def broken() -> Ask:
        raise RuntimeError("CUDA error: an illegal memory access\nlong advice")

    fine = Clock(Time(), noisy(1e-3, 1e-5))
    plans = [("copy 8", missing), ("read 8", broken), ("copy 4", lambda: ask(fine))]
    monkeypatch.setattr(gpu, "plans", lambda device, arch, say: plans)
    monkeypatch.setattr(child, "_sm_clock", lambda device: None)
    said = Said()
    child.main(said, "cuda:0", "sm_90", 1, [], [], 0.01)  # type: ignore[arg-type]
    absent = {m["absent"]: m["why"] for m in said.messages if "absent" in m}
    assert absent == {
        "copy 8": "it takes 8 bytes, and 4 are free",
        "read 8": "CUDA error: an illegal memory access",
    }
    assert [m["roof"]["name"] for m in said.messages if "roof" in m] == ["copy"]
    assert said.messages[-1]["notes"] == [child.NO_NVML]


# The command


def test_the_command_prints_what_is_kept_and_its_exit_code_says_whether_it_is_doubtful(
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr(command, "Session", lambda *_: contextlib.nullcontext(session))
    measured_anew = roofs(*COPIES, device="cpu", key=store.key_of(session.machine(), "cpu"))
    monkeypatch.setattr(command, "measure", lambda *_: measured_anew)

    assert command.show("cpu", again=False, as_json=True) == 0
    assert decode(capsys.readouterr().out) == measured_anew
    store.save(replace(measured_anew, doubtful="others use it", time="then"))
    assert command.show("cpu", again=False, as_json=False) == command.DOUBTFUL
    said = capsys.readouterr().out
    assert "measured then, kept; --again measures anew" in said
    assert "ceiling doubtful: others use it" in said
    assert command.show("cpu", again=True, as_json=False) == 0
    assert "kept" not in capsys.readouterr().out
    with pytest.raises(AssayError, match="--device tpu: say cpu, cuda or cuda:1"):
        command.show("tpu", again=False, as_json=False)


# Really measured, on this CPU


def test_sizes_reach_beyond_the_last_cache_and_not_beyond_memory() -> None:
    found = sizes_of(MACHINE)
    assert found[0] == 1 << 18
    assert found[-1] >= 4 * (1 << 25)
    assert sizes_of(replace(MACHINE, llc_bytes=1 << 30))[-1] <= MACHINE.memory_bytes // 8
    assert sizes_of(replace(MACHINE, llc_bytes=None))[-1] == 1 << 28


def test_the_ceilings_of_this_cpu(session: Session) -> None:
    steps: list[str] = []
    found = measure(
        session,
        session.machine(),
        "cpu",
        lambda what, done, total: steps.append(what),
        seconds=0.001,
        sizes=[1 << 18, 1 << 20],
        matrices=[64],
    )
    names = {(r.name, r.bytes, r.shape) for r in found.roofs}
    assert {(n, s, "") for n in ("read", "write", "copy") for s in (1 << 18, 1 << 20)} <= names
    assert {("float32 matrix", None, "64^3"), ("float64 matrix", None, "64^3")} <= names
    assert len(steps) == len(found.roofs) == 8
    assert not found.absent
    for one in found.roofs:
        assert len(one.samples) >= LEAST_ROUNDS
        assert 0 < one.low <= one.value <= one.high < 1e14
        assert one.value > 1e8  # a process beside it may stretch some samples a thousandfold
    assert (found.datasheet, found.device) == (None, "cpu")


@pytest.mark.full
def test_bench_sets_its_times_against_the_ceilings_that_are_kept(
    session: Session,
    judge: Callable[..., list[Row]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    machine = session.machine()
    slow, long = copy(1e6, 1 << 18), copy(1e6, 1 << 24)
    hot = [replace(one, cache="hot") for one in (slow, long)]
    store.save(roofs(*hot, device="cpu", key=store.key_of(machine, "cpu")))
    (row,) = judge(
        """
import assay
op = assay.Op("twice", lambda x: 2 * x, lambda make, n: (make.normal(n),),
              cases=assay.grid(n=[200_000]))
""",
        timed=True,
        variants=("eager",),
        budget=0.1,
    )
    assert row.timing
    assert row.timing.share
    assert (row.timing.share.of, row.timing.share.roofs) == ("copy", "r")
    assert row.bytes
    assert row.timing.share.value == pytest.approx(row.bytes / 1e6 / row.timing.median)
    assert row.timing.floor is None, "no data sheet of a CPU says enough"
    assert "the ceiling or the count of bytes or FLOP is wrong" in table.throughput(row)


def test_without_ceilings_and_with_doubtful_ones_there_is_no_share() -> None:
    def share(*known: Roofs) -> tuple[Share | None, str]:
        return made._share(SQUARE, 1e-3, "cold L2", "cuda:0", {r.device: r for r in known})

    missing = "no ceilings of cuda:0 are known: `assay roofs --device cuda:0` measures them"
    assert share() == (None, missing)
    assert share(roofs(*COPIES, device="cpu")) == (None, missing)
    assert share(roofs(*COPIES, doubtful="too slow")) == (None, "ceiling doubtful: too slow")
    assert share(roofs(*COPIES))[0]


@pytest.mark.full
def test_threads_that_compute_are_pinned_apart(session: Session) -> None:
    import os
    import subprocess
    import sys

    threads = min(2, len(os.sched_getaffinity(0)))
    code = (
        "import json, os; from assay.roofs import cpu\n"
        f"used = cpu.pin({threads})\n"
        f"mine = cpu._computing({threads})\n"
        "print(json.dumps([used, [sorted(os.sched_getaffinity(t)) for t in mine]]))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used, places = json.loads(out.stdout)
    assert len(used) == threads
    assert sorted(place for (place,) in places) == used


def test_more_threads_than_processors_are_not_pinned() -> None:
    import torch

    before = torch.get_num_threads()
    try:
        assert cpu.pin(before + 4096) == []
    finally:
        torch.set_num_threads(before)
