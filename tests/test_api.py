"""`assay.check` and `assay.bench` from scripts, pytest and notebook cells."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path

import pytest

import assay

CELL = """
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
SCRIPT = (
    CELL
    + """
rows = assay.check(op, variants="eager*", device="cpu")
print(sorted({(row.variant, row.word) for row in rows}))
"""
)


@pytest.mark.full
def test_a_script_may_check_its_own_op_without_a_main_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[('eager', 'right'), ('eager/sum', 'right')]\n"


@pytest.mark.full
def test_a_notebook_cell_is_written_down_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "<ipython-input-1-abc>"
    linecache.cache[name] = (len(SCRIPT), None, SCRIPT.splitlines(keepends=True), name)
    space: dict[str, object] = {"__name__": "__main__"}
    exec(compile(CELL, name, "exec"), space)  # the cell up to its own call of check
    rows = assay.bench(space["op"], variants="eager*", device="cpu", budget=0.1)  # type: ignore[arg-type]
    assert {row.word for row in rows} == {"right"}
    assert all(row.timing for row in rows)
    assert (tmp_path / ".assay" / "cells" / "cell_twice.py").read_text() == SCRIPT


def test_what_is_no_target_is_refused_by_name() -> None:
    with pytest.raises(assay.AssayError, match="is no target: pass an Op"):
        assay.check(42)  # type: ignore[arg-type]
    lost: dict[str, object] = {"__name__": "nowhere"}
    exec(compile(CELL, "<string>", "exec"), lost)
    with pytest.raises(assay.AssayError, match="its source is nowhere to be found"):
        assay.check(lost["op"])  # type: ignore[arg-type]


def test_names_are_imported_when_used() -> None:
    code = "import assay, sys; assay.Op; assay.grid; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={**os.environ})
    with pytest.raises(AttributeError, match="it has AssayError"):
        assay.nosuch  # noqa: B018
