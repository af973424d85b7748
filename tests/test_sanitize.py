"""`assay check --sanitize`: reports read, verdicts made of them, the rest said."""

from __future__ import annotations

import re
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.machine import cores
from assay.pipeline import run
from assay.request import Progress, Request
from assay.sanitize import Sanitizer, reason_not_to, report, told, tool
from assay.session import Session
from assay.target import parse
from assay.types import FAIL, Row, Verdict
from assay.verdict.asking import Conditions, Oracle

FIXTURES = Path(__file__).parent / "fixtures" / "sanitizer"


def read(name: str) -> report.Report:
    return report.read(name.split("_")[0], (FIXTURES / f"{name}.txt").read_text())


READ = {
    # What each report holds: verdict's word, fault's word, kernel, file:line, count.
    "memcheck_write": [("wrote outside", "out of bounds", "twice", "kernel.cu:4", 2)],
    "memcheck_mixed": [
        ("read outside", "out of bounds", "gather", "kernel.cu:15", 1),
        ("crashed", "misaligned", "pairs", "kernel.cu:34", 1),
        ("wrote outside", "out of bounds", "tile", "kernel.cu:64", 1),
    ],
    "racecheck_barrier": [("race", "race", "shift", "kernel.cu:75", 3)],
    "racecheck_warp": [("race", "race", "warp", "kernel.cu:99", 1)],
    "initcheck_scratch": [
        ("read before written", "read before written", "total", "kernel.cu:48", 1)
    ],
    "synccheck_branch": [
        ("divergent barrier", "barrier in divergent code", "branch", "kernel.cu:110", 1),
        ("divergent barrier", "bad barrier", "counted", "kernel.cu:120", 1),
    ],
    "clean": [],
    "racecheck_clean": [],
}


@pytest.mark.parametrize("name", READ)
def test_a_report_is_read(name: str) -> None:
    found = read(name)
    assert found.problem == ""
    assert [
        (
            f.word,
            f.fault.word,
            report.short(f.kernel),
            f"{f.fault.file}:{f.fault.line}",
            f.fault.count,
        )
        for f in found.found
    ] == READ[name]


def test_who_and_where_is_told() -> None:
    (write,) = read("memcheck_write").found
    assert (write.fault.thread, write.fault.block) == ((104, 0, 0), (7, 0, 0))
    assert "write of size 4 bytes in twice" in write.fault.text
    assert "1 bytes after the nearest allocation" in write.fault.text
    (race,) = read("racecheck_barrier").found
    assert race.fault.other == "kernel.cu:73"
    assert race.fault.thread == (31, 0, 0)


def test_kernels_of_libraries_are_left_out_and_named() -> None:
    assert read("initcheck_scratch").excluded == ("at::native::vectorized_elementwise_kernel",)


def test_a_users_kernel_with_a_type_of_torch_is_the_users() -> None:
    text = (FIXTURES / "memcheck_write.txt").read_text()
    found = report.read("memcheck", text.replace("twice(float *", "void mine<at::Half>(at::Half *"))
    assert len(found.found) == 1
    assert not found.excluded


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ((FIXTURES / "truncated.txt").read_text(), "ends without a summary"),
        ((FIXTURES / "unsupported.txt").read_text(), "Device not supported"),
        ("", "wrote no report"),
        ("Segmentation fault\n", "wrote no report; its last line: Segmentation fault"),
        ("========= COMPUTE-SANITIZER\n", "ends without a summary"),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 3 errors\n", "summary says 3"),
        (
            "========= COMPUTE-SANITIZER\n========= Something new\n=========     at k()+0x10\n"
            "========= ERROR SUMMARY: 1 error\n",
            "can't read: Something new",
        ),
        (
            (FIXTURES / "memcheck_write.txt").read_text().replace("2 errors", "0 errors"),
            "summary says 0, its report holds 2",
        ),
    ],
)
def test_what_is_no_whole_report_is_never_clean(text: str, why: str) -> None:
    assert why in report.read("memcheck", text).problem


def row(word: str = "right", **more: object) -> Row:
    verdict = Verdict(word="right", findings=("an older one",)) if word == "right" else None
    given = {"outcome": "pass" if word == "right" else "fail", "device": "cuda:0", "way": "cuda"}
    return Row(op="o", variant="cuda", word=word, verdict=verdict, **{**given, **more})  # type: ignore[arg-type]


def test_the_worst_report_becomes_the_verdict_and_all_are_kept() -> None:
    made = told(row(), [read("racecheck_barrier"), read("memcheck_mixed"), read("clean")])
    assert (made.word, made.outcome) == ("wrote outside", FAIL)
    assert made.reason.startswith("kernel.cu:64: Invalid __shared__ write of size 4 bytes in tile")
    assert made.reason.endswith(", says memcheck")
    assert made.verdict is not None
    assert made.verdict.detail == made.reason
    assert [fault.line for fault in made.verdict.faults] == [64, 15, 34, 75]
    assert made.verdict.advice
    assert made.verdict.findings[0] == "an older one"


def test_a_crash_gets_its_place() -> None:
    made = told(row("crashed", reason="illegal memory access"), [read("memcheck_write")])
    assert made.word == "wrote outside"
    assert "kernel.cu:4: " in made.reason
    assert made.reason.endswith("; illegal memory access")


def test_clean_reports_leave_a_right_row_right_and_name_the_tools() -> None:
    made = told(row(), [read("clean"), read("racecheck_clean")])
    assert made.word == "right"
    assert made.verdict is not None
    assert made.verdict.findings == ("an older one", "sanitized: clean, racecheck")
    broken = told(row(), [read("clean"), read("truncated")])
    assert broken.verdict is not None
    assert any(f.startswith("not sanitized: truncated: its") for f in broken.verdict.findings)


def test_why_not_says_what_mends_it() -> None:
    assert reason_not_to("cuda:0", "", "/bin/tool") == ""
    assert "no driver; run it on a machine with" in reason_not_to("cpu", "no driver", "")
    assert "CUDA_HOME" in reason_not_to("cuda:0", "", "")


def test_the_tool_is_looked_for_in_the_toolkit(tmp_path: Path) -> None:
    program = tmp_path / "bin" / tool.NAME
    program.parent.mkdir()
    assert tool.find({"PATH": str(tmp_path)}) in ("", f"/usr/local/cuda/bin/{tool.NAME}")
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert tool.find({"PATH": "", "CUDA_HOME": str(tmp_path)}) == str(program)


def test_without_a_gpu_check_says_why(judge: Callable[..., list[Row]]) -> None:
    rows = judge("square", sanitize=True, case={"n": 1}, variants=("eager", "cuda*"))
    by_way = {r.way: r for r in rows if r.word == "right"}
    assert {"eager", "cuda"} <= set(by_way), [(r.label, r.word, r.reason) for r in rows]
    findings = {way: r.verdict.findings for way, r in by_way.items() if r.verdict}
    assert any("not sanitized: no GPU: " in f for f in findings["cuda"])
    assert any("no GPU kernel of the user's own" in f for f in findings["eager"])


OP = """
import time
import torch
import assay

op = assay.Op("twice", lambda x: 2 * x, lambda make, n: (make.normal(n),), cases=assay.grid(n=[9]))

@op.variant("python/right")
def right(x):
    print("========= ERROR SUMMARY: 0 errors")
    return x + x

@op.launcher("python/sleeps")
def sleeps(y, x):
    torch.mul(x, 2, out=y)
    if {slow}:
        time.sleep(60)
"""

FAKE = """#!{python}
import subprocess, sys
given = sys.argv[1:]
log = given[given.index("--log-file") + 1]
name = given[given.index("--tool") + 1]
command = given[given.index({python!r}):]
code = subprocess.call(command)
texts = {texts!r}
if texts.get(name) is not None:
    open(log, "w").write(texts[name])
sys.exit(code)
"""


@pytest.fixture
def sanitized(session: Session, tmp_path: Path) -> Callable[..., Row]:
    """A row after a compute-sanitizer that replays texts round the real call, on the CPU."""

    def made(
        texts: dict[str, str | None], variant: str = "python/right", slow: bool = False
    ) -> Row:
        clean = (FIXTURES / "clean.txt").read_text()
        races = (FIXTURES / "racecheck_clean.txt").read_text()
        every = {name: clean for name in report.TOOLS} | {"racecheck": races} | texts
        program = tmp_path / tool.NAME
        program.write_text(FAKE.format(python=sys.executable, texts=every))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        file = tmp_path / "twice.py"
        file.write_text(OP.replace("{slow}", str(slow)))
        target = parse(str(file))
        asked = Request((target,), timed=False, device="cpu", variants=(variant,), seed=1)
        nouns = run(session, asked, Progress())
        (right,) = [noun for noun in nouns if isinstance(noun, Row)]
        conditions = Conditions(target, "cpu", "sm_90", 1, 10.0, 0.05, "", cores())
        with Oracle(session, conditions, "twice") as oracle:
            # The row says that it ran on a GPU: on a CPU nothing is sanitized.
            from assay.types import replace

            row = replace(right, device="cuda:0")
            return Sanitizer(session, conditions, oracle, "", str(program)).row(row)

    return made


def findings(row: Row) -> tuple[str, ...]:
    assert row.verdict is not None
    return row.verdict.findings


@pytest.mark.gallery
def test_four_clean_tools_are_named(sanitized: Callable[..., Row]) -> None:
    made = sanitized({})
    assert made.word == "right", made.reason
    assert "sanitized: memcheck, racecheck, initcheck, synccheck" in findings(made)


@pytest.mark.full
def test_what_a_tool_finds_is_the_verdict(sanitized: Callable[..., Row]) -> None:
    made = sanitized({"racecheck": (FIXTURES / "racecheck_barrier.txt").read_text()})
    assert made.word == "race"
    assert "kernel.cu:75" in made.reason
    assert "kernel.cu:73" in made.reason
    assert "sanitized: memcheck, racecheck, initcheck, synccheck" in findings(made)


@pytest.mark.gallery
def test_a_tool_without_a_report_is_named(sanitized: Callable[..., Row]) -> None:
    """Though the kernel itself prints a summary: the report is a file."""
    made = sanitized({"initcheck": None, "synccheck": (FIXTURES / "truncated.txt").read_text()})
    assert made.word == "wrote outside", "what a broken report holds is kept"
    assert any(
        "not sanitized: initcheck wrote no report (exit code 0)" in f for f in findings(made)
    )
    assert any("not sanitized: synccheck: its report ends without" in f for f in findings(made))


@pytest.mark.gallery
def test_a_tool_that_hangs_is_ended(
    sanitized: Callable[..., Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = sanitized({}, "python/sleeps")
    assert right.word == "right"
    monkeypatch.setattr("assay.sanitize.LOADING_SECONDS", 3.0)
    monkeypatch.setattr(tool, "ENVIRONMENT", {**tool.ENVIRONMENT, "TWICE_SLEEPS": "1"})
    file_sleeps = OP.replace("if {slow}", "if __import__('os').environ.get('TWICE_SLEEPS')")
    monkeypatch.setattr(sys.modules[__name__], "OP", file_sleeps)
    begin = time.monotonic()
    made = sanitized({}, "python/sleeps")
    assert time.monotonic() - begin < 45
    assert made.word == "right"
    assert [f for f in findings(made) if re.match(r"not sanitized: \w+: no answer after 4 s", f)]
    assert not [f for f in findings(made) if f.startswith("sanitized")]


@pytest.mark.gallery
def test_a_call_that_fails_under_a_clean_tool_is_not_clean(
    sanitized: Callable[..., Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "ENVIRONMENT", {**tool.ENVIRONMENT, "TWICE_DIES": "1"})
    dying = OP.replace(
        "    return x + x",
        "    if __import__('os').environ.get('TWICE_DIES'):\n"
        "        raise RuntimeError('no')\n    return x + x",
    )
    monkeypatch.setattr(sys.modules[__name__], "OP", dying)
    made = sanitized({})
    assert any(
        "memcheck: the call failed there: crashed: RuntimeError: no" in f for f in findings(made)
    )


def test_a_missing_program_is_said(tmp_path: Path) -> None:
    from assay.sanitize.job import SanitizeJob
    from assay.types import Case

    job = SanitizeJob(
        target=parse("square"),
        op="square",
        variant="eager",
        knobs={},
        case=Case(),
        specs=(),
        seed=1,
        device="cpu",
        arch="sm_90",
    )
    found = tool.run(str(tmp_path / "nothing"), "memcheck", job, tmp_path, 5.0)
    assert "can't be started" in found.problem
