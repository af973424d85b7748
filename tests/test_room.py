"""Room on a GPU that processes share, and what a busy stream holds back from a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.hostile import LAYOUTS
from assay.ops.square import square
from assay.verdict import chunks, late, oracle, room

FAR = LAYOUTS["far"](torch.arange(12.0).reshape(3, 4))


def locks() -> list[Path]:
    return [*room.cache.root().parent.glob("locks/far-*")]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))


def test_what_spans_gigabytes_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    inside, left = threading.Event(), threading.Event()

    def second() -> None:
        with room.alone((FAR,), "cuda:0", False):
            inside.set()
        left.set()

    with room.alone((torch.ones(3), FAR), "cuda:0", False):
        other = threading.Thread(target=second)
        other.start()
        assert not inside.wait(0.3)
        with room.alone((torch.ones(3), 2), "cuda:0", False), room.alone((FAR,), "cpu", False):
            pass  # these take no such memory, and wait for nobody
        with room.alone((FAR,), "cuda:0", True):
            pass
    assert left.wait(10)
    other.join()


def test_what_is_small_asks_for_no_lock() -> None:
    with room.alone((torch.ones(3),), "cuda:0", False):
        assert not locks()


def test_truths_kept_on_a_gpu_leave_most_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Card:
        total_memory = 80 << 30

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Card)
    assert room.kept_bytes("cuda:0", 1) == int(0.2 * (80 << 30)), "a large case in two dtypes"
    assert 12 * room.kept_bytes("cuda:0", 12) <= 16 << 30
    assert room.kept_bytes("cpu", 4) == 1 << 30


def test_on_a_gpu_a_chunk_is_worth_its_launch() -> None:
    assert chunks.chunk_of(torch.ones(3)) == chunks.CHUNK
    assert chunks.chunk_of(torch.ones(3, device="meta")) == chunks.ON_GPU


@pytest.mark.parametrize("value", [FAR, torch.arange(12.0), torch.arange(12).expand(2, 12)])
def test_what_a_kernel_must_not_see_yet_is_poison_and_comes_back(value: torch.Tensor) -> None:
    value = value if late.sparse(value) else value.clone()
    before = value.clone()
    (place,) = late._places([value, value])
    assert place.numel() * place.element_size() < 1 << 20, "not what lies between"
    kept = place.clone(memory_format=torch.contiguous_format)
    place.copy_(late._pattern(place, 0xA5))
    assert set(value.contiguous().view(torch.uint8).flatten().tolist()) == {0xA5}
    place.copy_(kept)
    assert torch.equal(value, before)


def test_where_others_have_the_memory_the_cpu_works_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the truth, and of what is allowed, the first attempt finds no memory."""
    case, asked = square.cases[0], []

    def full(kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def once(*args: Any) -> Any:
            asked.append(kind)
            if asked.count(kind) == 1:
                raise torch.cuda.OutOfMemoryError
            return real(*args)

        return once

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(oracle, "truth_of", full("truth", oracle.truth_of))
    monkeypatch.setattr(oracle, "budgeted", full("allowed", oracle.budgeted))
    known = oracle.Oracle(square, "cpu")._known(case, 1)
    assert known.expected.truth[0].dtype is torch.float64
    assert asked == ["truth", "truth", "allowed", "allowed"]
