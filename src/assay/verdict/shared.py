"""Memory of a GPU that passes from one process to another without a way through the host.

Who ships a tensor exports a copy of its bytes, and keeps that until it is told to go on; the oracle
opens it once and makes a copy of its own, which nobody else can write to. Not every system lets
processes do that, so the oracle exports a probe first, and who can't open it ships by files.
"""

from __future__ import annotations

import torch

from .protocol import Shared, Shipped

ROOM = 8
"""So many times its bytes must be free, here and for the oracle, else a tensor goes by a file."""
PROBE = 251
"""Bytes of the probe: 0, 1, 2, ..."""
_passes = False
"""Whether a probe of the oracle's was opened here."""
_exported: dict[bytes, torch.Tensor] = {}
"""By handle and offset: alive until `release`."""
_opened: dict[bytes, torch.Tensor] = {}
"""The oracle's copies, until `forget`."""


def probe(device: str) -> Shared | None:
    """A probe of the oracle's for `allow`; None where there is no GPU, or it can't share."""
    if not device.startswith("cuda"):
        return None
    return _export(torch.arange(PROBE, dtype=torch.uint8, device=device))


def allow(given: Shared | None) -> bool:
    """From now on this process exports if it can open the probe; whether it can."""
    global _passes
    _passes = False
    if given is not None:
        try:
            found = opened(given).cpu()
            _passes = torch.equal(found, torch.arange(PROBE, dtype=torch.uint8))
        except RuntimeError:  # of the driver or the system: bytes go by files
            _passes = False
        forget()
    return _passes


def export(raw: torch.Tensor) -> Shared | None:
    """What opens a copy of these bytes elsewhere; None where that is not possible or allowed."""
    if not _passes or raw.device.type != "cuda" or not raw.numel() or not _roomy(raw):
        return None
    return _export(raw)


def _export(raw: torch.Tensor) -> Shared | None:
    copy = raw.clone()
    try:
        given = copy.untyped_storage()._share_cuda_()
    except RuntimeError:  # what the driver or the system does not allow is done by a file
        return None
    device, handle, size, offset, counter, counter_offset, event, waits = given
    made = Shared(
        device=device, handle=handle, size=size, offset=offset, length=raw.numel(),
        counter=counter, counter_offset=counter_offset, event=event, waits=waits,
    )  # fmt: skip
    _exported[_key(made)] = copy
    return made


def release() -> None:
    """Nobody looks at what was exported any more."""
    if _exported:
        _exported.clear()
        torch.cuda.ipc_collect()


def exported(shipped: Shipped) -> torch.Tensor:
    """The copy that this process exported."""
    assert shipped.shared is not None
    return _exported[_key(shipped.shared)]


def opened(shared: Shared) -> torch.Tensor:
    """The bytes that somebody else exported, as a copy: opened once, however often it is asked.

    On the CPU, where a GPU has no room for it.

    Raises RuntimeError if there are no such bytes.
    """
    key = _key(shared)
    if key not in _opened:
        torch.cuda.init()
        storage = torch.UntypedStorage._new_shared_cuda(
            shared.device, shared.handle, shared.size, shared.offset, shared.counter,
            shared.counter_offset, shared.event, shared.waits,
        )  # fmt: skip
        whole = torch.empty(0, dtype=torch.uint8, device=f"cuda:{shared.device}").set_(storage)
        try:
            _opened[key] = whole[: shared.length].clone()
        except torch.cuda.OutOfMemoryError:
            _opened[key] = whole[: shared.length].cpu()
        torch.cuda.synchronize(shared.device)
    return _opened[key]


def forget() -> None:
    """Frees all copies of what was opened."""
    _opened.clear()


def _key(shared: Shared) -> bytes:
    return shared.handle + shared.offset.to_bytes(8, "little") + shared.event


def _roomy(raw: torch.Tensor) -> bool:
    free, _ = torch.cuda.mem_get_info(raw.device)
    idle = torch.cuda.memory_reserved(raw.device) - torch.cuda.memory_allocated(raw.device)
    return free + idle > ROOM * raw.numel()
