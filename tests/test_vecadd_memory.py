"""Vector addition in explicit and in managed memory: what is measured, and what is refused."""

from __future__ import annotations

import sys

import pytest
import torch

from benchmarks import vecadd_memory


@pytest.mark.parametrize(
    ("gpu", "arguments", "said"),
    [
        (False, [], "no GPU here: memory that moves"),
        (True, ["--n", str(1 << 29)], r"--n 536,870,912: 15.0 GB in all; --most 4 GB allows less"),
    ],
)
def test_nothing_is_allocated_that_cannot_be(monkeypatch, gpu, arguments, said):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(sys, "argv", ["vecadd_memory", *arguments])
    with pytest.raises(SystemExit, match=said):
        vecadd_memory.main()


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["cuda/one_thread", "cuda/one_block", "cuda/naive"])
def test_managed_memory_is_explicit_memory_once_it_is_there(name):
    n = 1 << 22 if name != "cuda/one_thread" else 1 << 16
    lines = {row["memory"]: row for row in vecadd_memory.measured(name, n, 3)}
    assert list(lines) == ["explicit", "managed", "managed, resident", "managed, prefetched"]
    assert all(0 < s < 10 for row in lines.values() for s in row["samples"])
    assert lines["managed, prefetched"]["prefetch_seconds"] > 0
    if name == "cuda/naive":
        explicit = lines["explicit"]["seconds"]
        assert lines["managed"]["seconds"] > 3 * explicit, "faults and copies are in its time"
        assert lines["managed, resident"]["seconds"] < 3 * explicit


@pytest.mark.gpu
@pytest.mark.alone
def test_a_wrong_sum_is_not_timed(monkeypatch):
    monkeypatch.setattr(
        vecadd_memory, "kernel_of", lambda name, inputs: type("K", (), {"run": lambda *_: []})()
    )
    with pytest.raises(vecadd_memory.AssayError, match="another sum than torch's"):
        list(vecadd_memory.measured("cuda/naive", 1 << 10, 1))
