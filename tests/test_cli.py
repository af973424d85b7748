"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import assay

from assay.rows import decode, find_run, read
from assay.types import Machine, Row, Strength

OP = """
import torch
import assay

op = assay.Op(
    "twice",
    lambda x: 2 * x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[10, 1000]),
)

@op.variant("eager/sum")
def added(x):
    return x + x
"""
WRONG = OP + '\n@op.variant("eager/wrong")\ndef wrong(x):\n    return x.clone()\n'


@pytest.mark.full
def test_json_prints_rows_alone_and_the_run_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WRONG)
    done = assay(tmp_path, "check", "mine.py", "--json", "-k", "eager*")
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    rows = [decode(line) for line in done.stdout.splitlines()]
    assert all(isinstance(row, Row) for row in rows)
    kept = list(read(find_run("last", tmp_path)))
    assert isinstance(kept[0], Machine)
    assert [noun for noun in kept if isinstance(noun, Row)] == rows
    assert [noun.alive for noun in kept if isinstance(noun, Strength)] == [()]
    assert {(r.variant, r.word) for r in rows if not r.case.zoo} == {
        ("eager", "right"),
        ("eager/sum", "right"),
        ("eager/wrong", "wrong value"),
    }
    assert (tmp_path / ".assay" / ".gitignore").read_text() == "*\n"


@pytest.mark.full
def test_a_table_says_what_is_wrong_and_what_to_do_next(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WRONG)
    done = assay(tmp_path, "check", "mine.py", "-k", "eager*")
    assert done.returncode == 1
    assert "eager/wrong" in done.stdout
    assert "next:" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.full
def test_usage_errors_exit_2_and_leave_no_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OP)
    for words, text in (
        (("check", "nosuch"), "no operator of that name"),
        (("check", "missing.py"), "there is no file"),
        (("check", "mine.py", "--case", "n"), "is not name=value"),
        (("check", "mine.py", "--arch", "hopper"), "write it as sm_80"),
        (("check", "mine.py", "--deadline", "soon"), "write a time such as 30s"),
        (("check", "mine.py", "--require", "opencl"), "no such way"),
    ):
        done = assay(tmp_path, *words)
        assert done.returncode == 2, (words, done)
        assert text in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr
    runs = tmp_path / ".assay" / "runs"
    assert not runs.exists() or not list(runs.iterdir())


@pytest.mark.full
def test_an_error_at_import_names_the_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import assay\n\n1 / 0\n")
    done = assay(tmp_path, "check", "mine.py")
    assert done.returncode == 2
    assert "mine.py:3: ZeroDivisionError" in done.stderr


@pytest.mark.full
def test_ctrl_c_keeps_what_was_judged_and_leaves_no_process(tmp_path: Path) -> None:
    slow = OP + (
        '\n@op.variant("eager/slow")\ndef slow(x):\n    import time\n'
        "    time.sleep(60)\n    return 2 * x\n"
    )
    (tmp_path / "mine.py").write_text(slow)
    marker = f"ASSAY_TEST_MARK={tmp_path}"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "assay",
            "check",
            "mine.py",
            "-k",
            "eager*",
            "--deadline",
            "60s",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ASSAY_TEST_MARK": str(tmp_path), "PYTHONFAULTHANDLER": "1"},
        # What a shell started in the background ignores SIGINT, and so would this process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    runs = tmp_path / ".assay" / "runs"
    end = time.monotonic() + 60
    while time.monotonic() < end:
        files = list(runs.glob("*/rows.jsonl"))
        if files and files[0].read_bytes().count(b"eager/sum") >= 2:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # says what each of its threads is at
        pytest.fail(f"it did not end: {process.communicate()[1]}")
    assert process.returncode == 130, (out, err)
    assert "what was measured is kept" in err
    kept = [noun for noun in read(find_run("last", tmp_path)) if isinstance(noun, Row)]
    assert {r.word for r in kept if r.variant == "eager/sum"} == {"right"}
    time.sleep(0.3)
    left = [
        p
        for p in Path("/proc").glob("[0-9]*/environ")
        if marker.encode() in _read(p) and p.parent.name != str(os.getpid())
    ]
    assert not left


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # ended while we looked, or not ours
        return b""


@pytest.mark.full
def test_new_writes_a_file_that_passes(tmp_path: Path) -> None:
    done = assay(tmp_path, "new", "my_swish", "--way", "cpp")
    assert done.returncode == 0, done.stderr
    done = assay(tmp_path, "check", "my_swish.py", "-k", "cpp", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {json.loads(line)["word"] for line in done.stdout.splitlines()} == {"right"}
    again = assay(tmp_path, "new", "my_swish", "--way", "cpp")
    assert again.returncode == 2
    assert "is there already" in again.stderr


@pytest.mark.full
def test_list_and_version(tmp_path: Path) -> None:
    assert assay(tmp_path, "--version").stdout.startswith("assay 0.")
    listed = assay(tmp_path, "list", "square").stdout
    assert "cuda/vectorised" in listed
    assert "case" in listed
