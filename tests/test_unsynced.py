"""A user's own timing of GPU work that does not wait for it is warned about; what waits is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.pipeline import run
from assay.request import Progress, Request
from assay.session import Session
from assay.target import parse
from assay.unsynced import warnings

NAIVE = """
import time
x = torch.randn(8, device="cuda")
def timed(f):
    begin = time.time()
    f(x)
    return time.time() - begin
"""


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda s: s, 7),
        (lambda s: s.replace("time.time()", "perf_counter()"), 7),
        (
            lambda s: s.replace(
                "return time.time() - begin", "end = time.time()\n    print(end - begin)"
            ),
            7,
        ),
    ],
)
def test_a_clock_that_stops_at_the_launch_is_named_with_its_line(
    change: Callable[[str], str], line: int
) -> None:
    (said,) = warnings(change(NAIVE), "mine.py")
    assert said.startswith(f"mine.py:{line}: ")
    assert "torch.cuda.synchronize()" in said


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.replace("    f(x)\n", "    f(x)\n    torch.cuda.synchronize()\n"),
        lambda s: s.replace("f(x)\n", "f(x).item()\n"),
        lambda s: s.replace("    f(x)\n", ""),
        lambda s: s.replace('device="cuda"', 'device="cpu"'),
        lambda s: s.replace("- begin", "- 5.0"),
        lambda s: s + "(",
    ],
)
def test_what_waits_or_times_nothing_on_a_gpu_is_not(change: Callable[[str], str]) -> None:
    assert warnings(change(NAIVE), "mine.py") == []


def test_check_says_so_before_it_judges(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch, assay\n"
        'op = assay.Op("twice", lambda x: 2 * x, lambda make, n: (make.normal(n),),\n'
        "              cases=assay.grid(n=[8]))\n"
        + NAIVE.replace('x = torch.randn(8, device="cuda")', 'd = "cuda"')
    )
    notes: list[Any] = []
    request = Request((parse(str(path)),), timed=False, device="cpu", variants=("eager",))
    list(run(session, request, Progress(note=notes.append)))
    assert [note for note in notes if "mine.py:10: this clock stops" in note], notes
