"""What a target names is what its files say now."""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.target import import_file
from assay.types import Row

NEIGHBOUR = "def double(x):\n    return x * 2\n"
OP = """
import assay
from doubling import double

op = assay.Op("doubled", lambda x: x + x, lambda make, n: (make.normal(n),), cases=[{"n": 99}])


@op.variant("eager/ours")
def ours(x):
    return double(x)
"""


def edited(path: Path, text: str) -> None:
    """As within one second: neither the size of a file nor its time tells of it."""
    before = path.stat()
    assert len(text) == before.st_size
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_bytecode_beside_a_file_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    path = tmp_path / "edited_once.py"
    path.write_text("VALUE = 1\n")
    py_compile.compile(str(path))
    edited(path, "VALUE = 2\n")
    assert import_file(str(path)).VALUE == 2


def test_an_edit_of_a_neighbour_is_judged_whatever_the_time(
    judge: Callable[..., list[Row]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    path = tmp_path / "kernel.py"
    path.write_text(OP)
    (tmp_path / "doubling.py").write_text(NEIGHBOUR)
    words = []
    for text in (NEIGHBOUR, NEIGHBOUR.replace("2", "3")):
        edited(tmp_path / "doubling.py", text)
        (row,) = judge(path, variants=("eager/ours",))
        words.append(row.word)
    assert words == ["right", "wrong value"]
