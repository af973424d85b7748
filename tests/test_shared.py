"""Memory of a GPU between processes, without a GPU: who has no probe ships by files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from assay.verdict import shared
from assay.verdict.buffers import Received, ship
from assay.verdict.protocol import Shared

FORGED = Shared(
    device=0, handle=bytes(66), size=512, offset=0, length=shared.PROBE, counter=b"/none",
    counter_offset=0, event=b"", waits=False,
)  # fmt: skip


def test_without_a_gpu_there_is_no_probe() -> None:
    assert shared.probe("cpu") is None
    assert not shared.allow(None)


def test_a_probe_that_can_not_be_opened_sends_bytes_by_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(given: Shared) -> torch.Tensor:
        raise RuntimeError("pidfd_getfd: Operation not permitted")

    monkeypatch.setattr(shared, "opened", refused)
    assert not shared.allow(FORGED)
    shipped = ship(torch.arange(100), tmp_path / "output0", set())
    assert shipped.shared is None
    assert torch.equal(Received(shipped).tensor(), torch.arange(100))


def test_who_has_opened_the_probe_exports_what_lies_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = torch.arange(shared.PROBE, dtype=torch.uint8)
    monkeypatch.setattr(shared, "opened", lambda given: wanted)
    assert shared.allow(FORGED)
    assert shared.export(torch.arange(100)) is None, "on the CPU there is nothing to export"
    monkeypatch.setattr(shared, "opened", lambda given: wanted.flip(0))
    assert not shared.allow(FORGED), "other bytes than those of the probe"
