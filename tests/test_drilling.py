"""`assay profile --drill`: a made timeline, its hottest kernels, a fake ncu at their places."""

from __future__ import annotations

import json
import re
import stat
import sys
from pathlib import Path

import pytest

from assay.commands import profiling
from assay.errors import AssayError, NotRun
from assay.inside.profiling import RANGE, drilling, tools
from assay.inside.profiling.drilling import drill, hottest, plain
from assay.inside.profiling.timeline import Recorded, Schedule
from assay.inside.reading.trace import Trace, read_trace

PAGE = Path(__file__).parent / "fixtures" / "reading" / "details.txt"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false>(float*)"
SGEMM = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_"
    "alignc4_execute_kernel__5x_cublas"
)
PRINTED = (
    "void <unnamed>::softmax_warp_forward<float, float, float, 10, 0, 0>(T2 *, const T1 *, int, "
    "int, int, const bool *, int, bool)"
)
"""The fixture's first kernel, as ncu prints it; the second is SGEMM."""
CALL = [("fill(float*)", 5), (SOFTMAX, 40), ("fill(float*)", 7), (SGEMM, 90), ("fill(float*)", 6)]
"""Kernels of a call in the order of their launches, with microseconds."""
PROGRAM = tools.Program("softmax", "triton")


def timeline(folder: Path, calls: int = 2, side: bool = False) -> Path:
    """A Chrome trace of so many calls. side: the third kernel runs on another stream, first."""
    events, now, number = [], 1000.0, 0
    for _ in range(calls):
        begin, device = now, now + 50
        for place, (name, took) in enumerate(CALL):
            number += 1
            link = {"correlation": number}
            host = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": link}
            events.append({**host, "pid": 1, "tid": 1, "ts": now, "dur": 4})
            early = side and place == 2
            at = {"pid": 0, "tid": 8 if early else 7, "ts": begin + 20 if early else device}
            work = {"ph": "X", "cat": "kernel", "name": name, "args": link}
            events.append({**work, **at, "dur": took})
            now, device = now + 6, device + took + 1
        head = {"ph": "X", "cat": "user_annotation", "name": RANGE, "pid": 1, "tid": 1}
        events.append({**head, "ts": begin - 1, "dur": now - begin + 2})
        now = device + 100
    to = folder / "trace.json"
    to.write_text(json.dumps({"traceEvents": events}))
    return to


@pytest.mark.parametrize("side", [False, True])
def test_the_hottest_kernels_have_their_places_in_a_call(tmp_path: Path, side: bool) -> None:
    """By order of launch, which is what ncu counts; not by when they ran."""
    gemm, softmax, fill = hottest(read_trace(timeline(tmp_path, side=side)))
    assert (gemm.name, gemm.place, gemm.times) == (SGEMM, 3, 1)
    assert (softmax.name, softmax.place) == (SOFTMAX, 1)
    assert (fill.place, fill.times) == (2, 3)  # the longest of its three launches
    assert gemm.launches == 5
    assert gemm.share == pytest.approx(90 / 148)
    assert sum(one.share for one in (gemm, softmax, fill)) == pytest.approx(1)
    assert [one.name for one in hottest(read_trace(timeline(tmp_path)), 1)] == [SGEMM]


def test_a_recording_of_a_cpu_has_none() -> None:
    assert hottest(Trace("t", "torch.profiler", ())) == ()


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (SOFTMAX, "softmax_warp_forward"),
        ("void <unnamed>::softmax_warp_forward<float, 10>(T2 *, int)", "softmax_warp_forward"),
        ("void unnamed>::cunn_Forward<float, unnamed>::Epilogue, 8>(T3 *, T5)", "cunn_Forward"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(R)", "reduce_kernel"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("scale(float *, int)", "scale"),
    ],
)
def test_names_of_two_tools_are_brought_to_one(name: str, base: str) -> None:
    assert plain(name) == base


def fake(folder: Path, names: list[str] | None = None, body: str = "") -> str:
    """An ncu that records one launch, as the real one prints it: the fixture's page by its place,
    under the name that the timeline has there (or `names`)."""
    page = PAGE.read_text()
    second = re.search(r"^  sm80_xmma", page, re.MULTILINE)
    assert second
    pages = [page[: second.start()], page[second.start() :]]
    made = folder / "ncu"
    made.write_text(f"""#!{sys.executable}
import sys
from pathlib import Path
names = {names or [name for name, _ in CALL]!r}
pages = {pages!r}
told = sys.argv
{body}
if "--import" in told:
    kept = Path(told[told.index("--import") + 1])
    name = names[int(kept.read_text())]
    text = pages["gemm" in name]
    if "softmax" not in name and "gemm" not in name:
        text = text.replace({PRINTED!r}, name)
    print(text)
else:
    assert told[told.index("--launch-count") + 1] == "1"
    skip = told[told.index("--launch-skip") + 1]
    Path(told[told.index("--export") + 1] + ".ncu-rep").write_text(skip)
""")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return str(made)


def test_ncu_records_each_at_its_place(tmp_path: Path) -> None:
    hot = hottest(read_trace(timeline(tmp_path)), 2)
    gemm, softmax = drill(fake(tmp_path), PROGRAM, tmp_path, hot)
    assert (gemm.why, softmax.why) == ("", "")
    assert gemm.page == tmp_path / "launch-3.txt"
    assert softmax.page == tmp_path / "launch-1.txt"
    assert (tmp_path / "launch-3.ncu-rep").read_text() == "3"
    assert "softmax_warp_forward" in softmax.page.read_text()


def test_counters_of_another_kernel_are_not_taken_for_its_own(tmp_path: Path) -> None:
    hot = hottest(read_trace(timeline(tmp_path)), 1)
    names = ["copy(float*)"] * 5
    (one,) = drill(fake(tmp_path, names), PROGRAM, tmp_path, hot)
    assert one.why.startswith("launch 4 of the call that ncu recorded is copy, not sm80_xmma_gemm")


def test_two_kernels_at_one_place_are_refused(tmp_path: Path) -> None:
    hot = hottest(read_trace(timeline(tmp_path)), 1)
    body = f'if "--import" in told:\n    print({PAGE.read_text()!r}); sys.exit(0)'
    with pytest.raises(NotRun, match="ncu recorded 2 kernels in place of one"):
        list(drill(fake(tmp_path, body=body), PROGRAM, tmp_path, hot))


class Stage:
    """The command on a machine with a GPU that there is not: its timeline is a made one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        trace = timeline(folder)
        made = Recorded("softmax", "triton", "rows=1", "cuda:0", trace, Schedule())
        monkeypatch.setattr(profiling, "recorded", lambda *_, **__: made)
        monkeypatch.setattr(profiling, "chosen_device", lambda *_: "cuda:0")
        monkeypatch.setattr(tools, "find", lambda name: str(folder / name))
        self.options = profiling.Options("square", "cuda/naive", drill=True, to=folder)


@pytest.mark.full
def test_the_command_goes_from_timeline_to_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(tmp_path)
    stage = Stage(tmp_path, monkeypatch)
    monkeypatch.setattr(drilling, "hottest", lambda trace: hottest(trace, 2))
    assert profiling.run(stage.options) == 0
    said = capsys.readouterr().out
    assert "drill: 2 of the kernels, 87.8% of the time of the device's work" in said
    first, second = said.split("\n1. ")[1].split("\n2. ")
    assert first.startswith("60.8%, launch 4 of 5 of a call, its only launch")
    assert "compute decides" in first
    assert second.startswith("27.0%, launch 2 of 5 of a call, its only launch")
    assert "softmax_warp_forward" in second
    assert "launch-1.ncu-rep (ncu-ui opens it)" in second


@pytest.mark.full
def test_the_command_says_that_counters_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(tmp_path, ["copy(float*)"] * 5)
    stage = Stage(tmp_path, monkeypatch)
    monkeypatch.setattr(drilling, "hottest", lambda trace: hottest(trace, 1))
    assert profiling.run(stage.options) == 3
    assert "no counters: launch 4 of the call" in capsys.readouterr().err


@pytest.mark.full
def test_forbidden_counters_leave_the_timeline_and_estimates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(tmp_path, body='print("==ERROR== ERR_NVGPUCTRPERM"); sys.exit(1)')
    stage = Stage(tmp_path, monkeypatch)
    assert profiling.run(stage.options) == 3
    said = capsys.readouterr()
    assert "device work" in said.out
    assert "estimates and counts in place of counters" in said.out
    assert "refuses the GPU's counters" in said.err


@pytest.mark.full
def test_a_cpu_has_nothing_to_drill_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = "m=64 n=64 dtype=float32"
    options = profiling.Options("square", "eager", case, "cpu", drill=True, to=tmp_path)
    assert profiling.run(options) == 3
    said = capsys.readouterr()
    assert "nothing to drill into: no kernel of a GPU was recorded" in said.err


def test_a_drill_is_no_other_recording() -> None:
    with pytest.raises(AssayError, match="exclude one another"):
        profiling.run(profiling.Options("square", "eager", ncu=True, drill=True))


@pytest.mark.gpu
@pytest.mark.alone
def test_a_drill_on_a_gpu_has_counters_or_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = profiling.Options("softmax", "eager", drill=True, to=tmp_path)
    code = profiling.run(options)
    said = capsys.readouterr()
    assert "drill: " in said.out
    assert ("no counters: " in said.err) == (code == 3)
    if code == 0:
        assert "launch 1 of " in said.out
        assert list(tmp_path.glob("launch-*.ncu-rep"))
