"""The comparison with other judges: on a handful of kernels, and the table that is made of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from assay.selftest.zoo import Sample
from assay.session import Session

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.verdict import table  # noqa: E402
from benchmarks.verdict.kernels import compared  # noqa: E402

FILE = """
import os
import time

import torch

import assay

EXPECT = {
    "eager/zeros": ("wrong value", ""),
    "eager/one_percent_of_a_hundredth": ("wrong value", ""),
    "eager/broadcast": ("wrong shape", ""),
    "eager/dies": ("crashed", ""),
}

op = assay.Op(
    "doubled",
    lambda x: 2 * x,
    lambda make, n: (make.uniform(n, low=0.5, high=2.0),),
    cases=assay.grid(n=[33]),
)


@op.variant("eager/zeros")
def zeros(x):
    return torch.zeros_like(x)


@op.variant("eager/one_percent_of_a_hundredth")
def close(x):
    return 2 * x + 1e-3


@op.variant("eager/broadcast")
def broadcast(x):
    return (2 * x)[None]


@op.variant("eager/dies")
def dies(x):
    os._exit(0)


@op.launcher("eager/fills")
def fills(y, x):
    torch.add(x, x, out=y)


@op.variant("python/numpy")
def numpy(x):
    return x + x
"""

ALLCLOSE, ASSERT = "torch.allclose", "torch.testing.assert_close"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("zoo") / "wrong"
    folder.mkdir()
    (folder / "few.py").write_text(FILE)
    with Session(folder / "logs") as session:
        made = compared(session, [Sample(folder / "few.py")])
    return {row["kernel"]: row for row in made}


@pytest.mark.full
def test_each_peer_judges_as_it_would(rows: dict[str, dict[str, Any]]) -> None:
    zeros = rows["eager/zeros"]
    assert not zeros["passed"]
    assert zeros["assay"] == "wrong value"
    close = rows["eager/one_percent_of_a_hundredth"]
    assert "KernelBench" in close["passed"]
    assert "triton.testing.assert_close" in close["passed"]
    assert {ALLCLOSE, ASSERT} <= set(close["rejected"])
    assert close["assay"] == "wrong value"
    broadcast = rows["eager/broadcast"]
    assert ALLCLOSE in broadcast["passed"], "it broadcasts"
    assert {ASSERT, "KernelBench"} <= set(broadcast["rejected"])


@pytest.mark.full
def test_a_process_that_ends_is_noticed(rows: dict[str, dict[str, Any]]) -> None:
    dies = rows["eager/dies"]
    assert not dies["passed"]
    assert "it ended its process with" in dies["rejected"][ALLCLOSE]
    assert dies["assay"] == "crashed"


@pytest.mark.full
@pytest.mark.parametrize("kernel", ["eager/fills", "python/numpy"])
def test_right_ones_pass_everywhere(kernel: str, rows: dict[str, dict[str, Any]]) -> None:
    row = rows[kernel]
    assert not row["wrong"]
    assert row["rejected"] == {}
    assert {ALLCLOSE, ASSERT, "KernelBench"} <= set(row["passed"])
    assert row["assay"] == "right"


def row(kernel: str, *, wrong: bool, assay: str, passed: tuple[str, ...], **more: Any) -> dict:
    rejected = {name: "no" for name in (ALLCLOSE, ASSERT) if name not in passed}
    return {
        "file": "wrong/few",
        "op": "o",
        "kernel": kernel,
        "wrong": wrong,
        "assay": assay,
        "not_run_by_peers": "",
        "passed": list(passed),
        "rejected": rejected,
        **more,
    }


def test_the_table_counts_and_names(tmp_path: Path) -> None:
    rows = [
        row("a", wrong=True, assay="wrong value", passed=(ALLCLOSE,)),
        row("b", wrong=True, assay="right", passed=()),
        row("c", wrong=False, assay="right", passed=(ALLCLOSE,)),
        row(
            "d",
            wrong=False,
            assay="race",
            passed=(),
            not_run_by_peers="cuda needs a GPU",
            rejected={},
        ),
    ]
    peers = {"Assay": "1.0", ALLCLOSE: "(torch 2)", ASSERT: "(torch 2)", "gpucheck": "missing"}
    text = table.text({"peers": peers}, rows)
    assert "| Assay 1.0 | 1 of 2 | 0 of 1 |" in text
    assert f"| {ALLCLOSE} (torch 2) | 1 of 2 | 0 of 1 |" in text
    assert f"| {ASSERT} (torch 2) | 0 of 2 | 1 of 1 |" in text
    assert "| gpucheck | not asked: missing | |" in text
    assert f"**{ALLCLOSE}** let through: `few a`." in text
    assert "rejected 1 of the 1 right ones" in text
    page = tmp_path / "page.md"
    page.write_text("# Verdicts\n\nbefore\n\nafter\n")
    table.put(page, text)
    table.put(page, text.replace("few a", "few z"))
    written = page.read_text()
    assert written.count(table.BEGIN) == written.count(table.END) == 1
    assert "`few z`" in written
    assert "`few a`" not in written
    assert "before" in written
