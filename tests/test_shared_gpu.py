"""Memory of a GPU between processes: what is opened is a copy, and what can't be opened is told."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import torch

from assay.verdict import shared
from assay.verdict.buffers import Received, ship
from assay.verdict.honest import unsound
from assay.verdict.protocol import POISONS, Ran, Shared, Shipped

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(100)]


def exporter(pipe: Any, folder: str, probe: bytes) -> None:
    """Ships a tensor, then overwrites all that it exported, then lets it go."""
    from pathlib import Path

    assert shared.allow(msgspec.msgpack.decode(probe, type=Shared))
    value = torch.arange(100_003, device="cuda", dtype=torch.float32)
    shipped = ship(value, Path(folder) / "output0", set())
    torch.cuda.synchronize()
    pipe.send(msgspec.msgpack.encode(shipped))
    pipe.recv()
    shared.exported(shipped).zero_()
    torch.cuda.synchronize()
    pipe.send("overwritten")
    pipe.recv()
    shared.release()
    pipe.send("released")


@pytest.fixture
def elsewhere(tmp_path: Any) -> Iterator[Any]:
    """The end of a pipe to another process that has exported a tensor."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    probe = msgspec.msgpack.encode(shared.probe("cuda:0"))
    process = context.Process(target=exporter, args=(there, str(tmp_path), probe))
    process.start()
    yield here
    process.join(20)
    process.kill()
    shared.forget()
    shared.release()


def test_what_is_opened_is_a_copy_of_its_own(elsewhere: Any) -> None:
    shipped = msgspec.msgpack.decode(elsewhere.recv(), type=Shipped)
    assert shipped.shared is not None, "it went by a file"
    assert shipped.path == ""
    found = Received(shipped)
    assert found.lying().is_cuda
    elsewhere.send("go")
    assert elsewhere.recv() == "overwritten"
    wanted = torch.arange(100_003, dtype=torch.float32)
    assert torch.equal(found.tensor(), wanted), "written to after it was opened"
    assert torch.equal(Received(shipped).tensor(), wanted), "opened once"
    elsewhere.send("go")
    assert elsewhere.recv() == "released"


def test_memory_that_nobody_exported_is_a_verdict(elsewhere: Any) -> None:
    shipped = msgspec.msgpack.decode(elsewhere.recv(), type=Shipped)
    assert shipped.shared is not None
    elsewhere.send("go")
    elsewhere.recv()
    elsewhere.send("go")
    forged = msgspec.structs.replace(shipped.shared, handle=bytes(len(shipped.shared.handle)))
    run = Ran(
        seed=0,
        poison=POISONS[0],
        outputs=(msgspec.structs.replace(shipped, shared=forged),),
    )
    said = unsound([run], ())
    assert said is not None
    assert said.word == "tampered"
    assert "only files" in said.detail


def test_who_can_not_open_the_probe_ships_by_files(tmp_path: Any) -> None:
    probe = shared.probe("cuda:0")
    assert probe is not None
    forged = msgspec.structs.replace(probe, handle=bytes(len(probe.handle)))
    for given in (None, forged):
        assert not shared.allow(given)
        shipped = ship(torch.arange(1000, device="cuda"), tmp_path / "output0", set())
        assert shipped.shared is None
    shared.release()


def test_where_memory_is_short_it_goes_by_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(shared, "_passes", True)
    monkeypatch.setattr(shared, "_roomy", lambda raw: False)
    value = torch.arange(1000, device="cuda")
    shipped = ship(value, tmp_path / "output0", set())
    assert shipped.shared is None
    assert torch.equal(Received(shipped).tensor(), value.cpu())
    assert torch.equal(Received(shipped).lying(), value.cpu())
