"""`assay profile`: the schedule, the tools' commands, a fake ncu, and what can't be recorded."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.commands import profiling
from assay.errors import AssayError, NotRun
from assay.inside.profiling import RANGE, tools
from assay.inside.profiling.timeline import Schedule, draw, lines, recorded
from assay.inside.reading.operators import operators
from assay.inside.reading.timeline import timeline
from assay.inside.reading.trace import read_trace
from assay.session import Session
from assay.target import parse
from assay.types import Row

PAGE = Path(__file__).parent / "fixtures" / "reading" / "details.txt"
PROGRAM = tools.Program("softmax", "triton BLOCK=1024", "rows=64 n=1025")
CASE = {"m": 64, "n": 64, "dtype": "float32"}


def test_a_timeline_keeps_the_active_calls(session: Session, tmp_path: Path) -> None:
    plan = Schedule(wait=1, warmup=1, active=3)
    found = recorded(session, parse("square"), "eager", CASE, "cpu", tmp_path, plan, stacks=True)
    trace = read_trace(found.trace)
    assert len([span for span in trace.spans if span.name == RANGE]) == plan.active
    said = "\n".join(lines(found, 4))
    assert "3 calls recorded, after 1 that were not and 1 thrown" in said
    assert "none of them of a GPU" in said
    assert "aten::" in said
    assert draw(found).read_text().startswith("<svg")


RANGES = """
import torch
from torch.profiler import record_function
import assay

op = assay.Op("twice", lambda x: x * 2, lambda make, n: (make.normal(n),), cases=[{"n": 64}])

@op.variant("eager/ranges")
def ranges(x):
    with record_function("load"):
        y = x + 0
    with record_function("work"):
        with record_function("half"):
            y = y * 4
        with record_function("half"):
            return y / 2
"""


def test_named_ranges_become_phases_of_the_table(session: Session, tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(RANGES)
    target = parse(str(tmp_path / "twice.py"))
    found = recorded(session, target, "eager/ranges", {}, "cpu", tmp_path, Schedule(active=3))
    phases = {one.name: one for one in operators(read_trace(found.trace), ("range",))}
    assert {
        name: one.calls for name, one in phases.items() if name in ("load", "work", "half")
    } == {
        "load": 3,
        "work": 3,
        "half": 6,
    }
    assert phases["half"].seconds < phases["work"].seconds < phases[RANGE].seconds
    said = "\n".join(lines(found, 10))
    assert all(f"\n{name} " in said for name in ("load", "work", "half"))


@pytest.mark.full
def test_how_long_and_where_take_the_same_target(
    session: Session, judge: Callable[..., list[Row]], tmp_path: Path
) -> None:
    (row,) = judge("square", variants=("eager",), case=CASE, timed=True)
    assert row.timing is not None
    found = recorded(session, parse("square"), "eager", CASE, "cpu", tmp_path, Schedule())
    assert (found.op, found.label) == (row.op, row.label)
    assert "aten::" in "\n".join(lines(found, 3))


def test_emulated_code_is_not_profiled(session: Session, tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="would say nothing"):
        recorded(session, parse("square"), "cuda/naive", CASE, "cpu", tmp_path, Schedule())


def test_the_command_of_ncu_selects_launches_by_place() -> None:
    said = tools.ncu_command("/opt/ncu", PROGRAM, Path("out/counters"))
    text = " ".join(said)
    assert said[0] == "/opt/ncu"
    assert "--profile-from-start off" in text
    assert "--launch-skip 0 --launch-count 64" in text
    assert "--clock-control none --cache-control all" in text
    assert "kernel-name" not in text
    assert said[-9:] == [
        *(sys.executable, "-m", "assay.commands.once", "softmax"),
        *("-k", "triton BLOCK=1024", "--case", "rows=64 n=1025", "--profiled"),
    ]


def test_the_commands_of_nsys() -> None:
    said = " ".join(tools.nsys_command("nsys", PROGRAM, Path("t")))
    assert "--stats=true" in said
    assert "--capture-range=cudaProfilerApi" in said
    assert tools.nsys_export("nsys", Path("t"))[-1] == "t.nsys-rep"


def fake(folder: Path, body: str) -> str:
    """A program that stands in for ncu."""
    made = folder / "ncu"
    made.write_text(f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\n{body}\n")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return str(made)


WRITES = f"""
if "--import" in sys.argv:
    print(Path({str(PAGE)!r}).read_text())
else:
    Path(sys.argv[sys.argv.index("--export") + 1] + ".ncu-rep").write_text("x")
"""


def test_a_report_is_kept_and_its_page_read(tmp_path: Path) -> None:
    page = tools.ncu(fake(tmp_path, WRITES), PROGRAM, tmp_path / "counters")
    assert page.read_text().strip() == PAGE.read_text().strip()
    assert page.with_suffix(".ncu-rep").is_file()


def test_forbidden_counters_say_how_to_allow_them(tmp_path: Path) -> None:
    body = 'print("==ERROR== ERR_NVGPUCTRPERM - no permission"); sys.exit(1)'
    with pytest.raises(NotRun, match=r"refuses the GPU's counters.*to allow it: .*"):
        tools.ncu(fake(tmp_path, body), PROGRAM, tmp_path / "counters")


@pytest.mark.parametrize(
    "body", ['print("no kernels were profiled")', 'print("broke"); sys.exit(9)']
)
def test_an_ncu_that_records_nothing_is_no_success(tmp_path: Path, body: str) -> None:
    with pytest.raises(NotRun, match=r"ncu ended with \d, its last words: (no kernels|broke)"):
        tools.ncu(fake(tmp_path, body), PROGRAM, tmp_path / "counters")
    log = (tmp_path / "counters.log").read_text().strip()
    assert log in ("no kernels were profiled", "broke")


def test_a_missing_tool_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="nsys is not found: it is part of Nsight Systems"):
        tools.find("nsys", {"PATH": str(tmp_path), "CUDA_HOME": str(tmp_path)})
    fake(tmp_path, "")
    assert tools.find("ncu", {"PATH": str(tmp_path)}) == str(tmp_path / "ncu")


def test_a_peers_file_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert profiling.run(profiling.Options(read=PAGE, rows=1)) == 0
    assert "Nsight Compute" in capsys.readouterr().out
    with pytest.raises(AssayError, match="it goes without a TARGET"):
        profiling.run(profiling.Options(target="square", read=PAGE))
    with pytest.raises(AssayError, match="profiling what"):
        profiling.run(profiling.Options())


@pytest.mark.full
def test_without_counters_there_are_estimates_and_they_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = profiling.Options("square", "cuda/naive", ncu=True, device="cpu", to=tmp_path)
    assert profiling.run(options) == 3
    said = capsys.readouterr()
    assert "no counters: there is no GPU" in said.err
    assert "estimates and counts in place of counters" in said.out
    assert "memory decides" in said.out


@pytest.mark.gpu
@pytest.mark.alone
def test_a_chain_is_four_launches_and_its_twin_one(session: Session, tmp_path: Path) -> None:
    target = parse(str(Path(__file__).parent / "slow" / "chains.py") + ":large_chain")
    launched = []
    for variant in ("cuda/slow", "cuda/twin"):
        folder = tmp_path / variant.replace("/", "-")
        folder.mkdir()
        plan = Schedule(active=3)
        found = recorded(session, target, variant, {"n": 1 << 20}, "cuda:0", folder, plan)
        kernels = [s for s in read_trace(found.trace).spans if s.kind == "kernel"]
        launched.append(len(kernels) / plan.active)
    assert launched == [4, 1]


@pytest.mark.gpu
@pytest.mark.alone
def test_items_in_a_loop_are_waits_that_operators_imply(session: Session, tmp_path: Path) -> None:
    target = parse(str(Path(__file__).parent / "slow" / "chains.py") + ":sums")
    waits = []
    for variant in ("eager/slow", "eager/twin"):
        folder = tmp_path / variant.replace("/", "-")
        folder.mkdir()
        found = recorded(session, target, variant, {"rows": 64}, "cuda:0", folder, Schedule())
        implied = [w for w in timeline(read_trace(found.trace)).waits if w.implied]
        waits.append({w.name: w.calls / found.schedule.active for w in implied})
    # Of each row, the item, and the number that is written: it comes from memory not pinned.
    assert waits == [{"cudaStreamSynchronize": 2 * 64}, {}]


@pytest.mark.gpu
@pytest.mark.alone
def test_a_timeline_of_a_gpu_has_its_kernels(session: Session, tmp_path: Path) -> None:
    found = recorded(session, parse("square"), "eager", CASE, "cuda:0", tmp_path, Schedule())
    kernels = [span for span in read_trace(found.trace).spans if span.kind == "kernel"]
    assert len(kernels) >= found.schedule.active
    assert "100" in "\n".join(lines(found, 10))


@pytest.mark.gpu
@pytest.mark.alone
def test_counters_of_a_gpu_or_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = " ".join(f"{name}={value}" for name, value in CASE.items())
    code = profiling.run(profiling.Options("square", "cuda/naive", case, ncu=True, to=tmp_path))
    said = capsys.readouterr()
    if code == 3:
        assert "no counters: " in said.err
        assert "estimates and counts" in said.out
    else:
        assert "--clock-control none" in said.out
        assert (tmp_path / "counters.ncu-rep").is_file()
