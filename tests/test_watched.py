"""Judging from compiled code, end to end: order, barriers, counts, what can't be run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

import assay
import assay.types
from assay.errors import NotRun
from assay.simt import watch as watch_module
from assay.simt.adapters import Compiled
from assay.simt.watch import Watch
from assay.types import Row
from assay.verdict.watched import WORDS, word_of

Judge = Callable[..., list[Row]]
WATCHED = Path(__file__).parent / "wrong" / "watched.py"

TICKETS = """
import assay
import assay.types

def reference(x):
    return x.clone()

def inputs(make, n):
    return (make.uniform(n, low=1.0, high=2.0),)

op = assay.Op("tickets", reference, inputs, cases=assay.grid(n=[8]), deterministic=True)

@op.launcher("cuda", source="tickets.cu")
def launch(k, y, x):
    k["tickets"](grid=x.numel(), block=32)(y, x)
"""
TICKETS_CU = """
// y = x, a last bit more where a block drew an odd ticket: who draws which depends on their order.
__device__ unsigned drawn;
extern "C" __global__ void tickets(float* y, const float* x) {
    if (threadIdx.x) return;
    const unsigned odd = atomicAdd(&drawn, 1) & 1;
    y[blockIdx.x] = __uint_as_float(__float_as_uint(x[blockIdx.x]) + odd);
}
"""


def test_an_output_that_depends_on_the_order_of_blocks_is_named(
    judge: Judge, tmp_path: Path
) -> None:
    (tmp_path / "tickets.cu").write_text(TICKETS_CU)
    (tmp_path / "tickets.py").write_text(TICKETS)
    (row,) = judge(tmp_path / "tickets.py", variants=("cuda",))
    assert (row.word, row.verdict.judge) == ("not the same twice", "sm_90")


def test_each_barrier_is_needed_or_not(judge: Judge) -> None:
    (row,) = judge(WATCHED, variants=("cuda/shift",), drop_barriers=True)
    assert row.word == "right"
    lines = {(b.line, b.needed) for b in row.verdict.barriers}
    assert lines == {(9, True), (11, True)}
    assert all(b.seen and b.form == "bar.sync" for b in row.verdict.barriers)


HOPPER = """
import assay
import assay.types

def reference(x):
    return x.clone()

def inputs(make, n):
    return (make.normal(n),)

op = assay.Op("elected", reference, inputs, cases=assay.grid(n=[32]))

@op.launcher("cuda", source="hopper.cu")
def launch(k, y, x):
    k["copy"](grid=1, block=32)(y, x)
"""
HOPPER_CU = """
// y = x, with an instruction that only Hopper has in the code for it.
extern "C" __global__ void copy(float* y, const float* x) {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async;");
#endif
    y[threadIdx.x] = x[threadIdx.x];
}
"""


UNKNOWN = (
    '\nextern "C" __global__ void priority(float* y, const float* x) {\n    ',
    "\n    y[threadIdx.x] = x[threadIdx.x];\n}\n",
)


@pytest.mark.full
def test_code_for_hopper_alone_is_checked_as_built_for_sm_80(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "hopper.cu").write_text(HOPPER_CU)
    (tmp_path / "hopper.py").write_text(HOPPER)
    (row,) = judge(tmp_path / "hopper.py", variants=("cuda",))
    assert (row.word, row.verdict.judge) == ("right", "sm_80")
    unknown = 'asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(x));'
    (tmp_path / "hopper.cu").write_text(HOPPER_CU + unknown.join(UNKNOWN))
    (tmp_path / "hopper.py").write_text(HOPPER.replace('k["copy"]', 'k["priority"]'))
    (row,) = judge(tmp_path / "hopper.py", variants=("cuda",))
    assert (row.word, row.outcome) == ("not run", "absent")
    assert "not checkable: applypriority.global.L2::evict_normal at" in row.reason
    assert "hopper.cu:11" in row.reason


@pytest.mark.full
def test_counts_can_be_asserted() -> None:
    counts = assay.counts(str(WATCHED), "cuda/shift")
    load = counts.access("global load")
    assert (load.requests, load.sectors, load.ideal_sectors, load.bytes) == (8, 32, 32, 1024)
    assert counts.access("shared load").conflicts == 0
    assert counts == assay.counts(str(WATCHED), "cuda/shift")
    with pytest.raises(NotRun, match="no GPU kernel"):
        assay.counts("square", "cpp", case={"m": 37})


def test_every_fault_has_a_verdict_word() -> None:
    known = assay.types.OUTCOMES
    assert {known[word] for word in WORDS.values()} == {"fail"}
    fault = assay.types.Fault(
        word="out of bounds", text="", instruction="@%p1 ld.global.f32 %f1, [%rd1]"
    )
    assert word_of(fault) == "read outside"
    stored = assay.types.Fault(
        word="out of bounds", text="", instruction="st.global.f32 [%rd1], %f1"
    )
    assert word_of(stored) == "wrote outside"


SLOWLY_MADE_CU = """
// y = x after much that is unrolled (number {seed}): g++ takes longer over it than a run may take.
extern "C" __global__ void slow(float* y, const float* x) {{
    float v = x[threadIdx.x], w = 1.0f;
#pragma unroll
    for (int i = 0; i < 300; ++i) w = w * 1.0001f + v * {seed}.0f - v * {seed}.0f;
    y[threadIdx.x] = v + 0.0f * w;
}}
"""


def test_the_seconds_of_the_compiler_are_no_time_of_a_run(judge: Judge, tmp_path: Path) -> None:
    """What runs compiled code on the CPU is made at its first launch; a deadline is one of runs."""
    seed = secrets.randbelow(10**6)  # so that nobody has made it before
    (tmp_path / "slow.cu").write_text(SLOWLY_MADE_CU.format(seed=seed))
    (tmp_path / "op.py").write_text(
        "import assay\n"
        "op = assay.Op('slow', lambda x: x.clone(), lambda make, n: (make.normal(n),), "
        "cases=[{'n': 32}])\n"
        "@op.launcher('cuda', source='slow.cu')\n"
        "def launch(k, y, x):\n"
        "    k['slow'](grid=1, block=32)(y, x)\n"
    )
    (row,) = judge(tmp_path / "op.py", variants=("cuda",), deadline=1.0, zoo=False)
    assert row.word == "right", row.reason
    assert row.build is not None


@pytest.mark.full
def test_a_kernel_that_is_made_anew_again_and_again_is_ended(judge: Judge, tmp_path: Path) -> None:
    """Each making is building, between runs; all runs of a case together have one deadline."""
    (tmp_path / "twice.cu").write_text(
        "template <int I> __global__ void twice(float* y, const float* x) { *y = *x + 0 * I; }"
    )
    (tmp_path / "op.py").write_text(
        "import assay, time\n"
        "op = assay.Op('twice', lambda x: x.clone(), lambda make, n: (make.normal(n),), "
        "cases=[{'n': 1}])\n"
        "@op.launcher('cuda', source='twice.cu')\n"
        "def launch(k, y, x):\n"
        "    for i in range(1 if x.is_meta else 10**9):\n"
        "        k[f'twice<{i % 2}>'](grid=1, block=1)(y, x)\n"
        "        time.sleep(0 if x.is_meta else 0.2)\n"
    )
    (row,) = judge(tmp_path / "op.py", variants=("cuda",), deadline=3.0, zoo=False)
    assert row.word == "timed out"
    assert "no answer after 3 s (run)" in row.reason


def test_a_watch_tells_when_it_makes_a_kernel_and_that_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    watch = Watch(phase=told.append)
    one, other = (Compiled(name, "ptx", "sm_80", "cuda") for name in ("one", "other"))
    monkeypatch.setattr(watch_module, "load", lambda *_, **__: told.append("load"))
    for compiled in (one, one, other):
        watch._loaded(compiled, None)
    assert told == ["build", "load", "run", "load", "build", "load", "run"]


def test_a_kernel_that_cannot_be_made_leaves_the_phase_of_making(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(watch_module, "load", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Watch(phase=told.append)._loaded(Compiled("one", "ptx", "sm_80", "cuda"), None)
    assert told == ["build", "run"]
