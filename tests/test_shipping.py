"""Bytes reach a file whole and in order, whoever writes which part."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from assay.verdict import shipping

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def bytes_of(count: int, device: str) -> torch.Tensor:
    return torch.randint(0, 256, (count,), dtype=torch.uint8).to(device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 1000, shipping.STAGED + 1, 9 * shipping.STAGED - 7])
def test_a_file_holds_the_bytes_of_a_tensor(tmp_path: Path, device: str, count: int) -> None:
    raw = bytes_of(count, device)
    shipping.write(raw, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == raw.cpu().numpy().tobytes()


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_still_being_computed_is_waited_for(tmp_path: Path, device: str) -> None:
    count = 4 * shipping.STAGED
    raw = torch.zeros(count, dtype=torch.uint8, device=device)
    if device == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(40_000_000)
            raw.fill_(7)
            shipping.write(raw, tmp_path / "out")
    else:
        raw.fill_(7)
        shipping.write(raw, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == bytes([7]) * count


def staged(raw: torch.Tensor, path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(raw.numel())
        shipping.staged(raw, file.fileno())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("parts", [0.3, 1, 2, 7.5, 16])
def test_several_threads_write_each_part_once(tmp_path: Path, device: str, parts: float) -> None:
    raw = bytes_of(int(parts * shipping.STAGED), device)
    staged(raw, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == raw.cpu().numpy().tobytes()


def test_a_short_write_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: real(file, data[:999_983], at))
    raw = bytes_of(2 * shipping.STAGED + 5, "cpu")
    staged(raw, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == raw.numpy().tobytes()


def test_what_a_thread_meets_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left"):
        staged(bytes_of(4 * shipping.STAGED, "cpu"), tmp_path / "out")
