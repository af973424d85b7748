"""Buffers that tell: tensors between guards, filled with poison, shipped whole to the oracle.

A tensor lives in the middle of a larger block of bytes. Everything outside it, and every output
before the run, holds one poison byte; the oracle later looks at all of it. Two poisons are used in
two runs: a byte that survives in both was never written, whatever the right answer is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..inputs import dtype_name, dtype_of
from .protocol import Shipped

POISONS = (0xFF, 0x7B)
"""0xFF.. is NaN in every float format and -1 in every integer; 0x7B.. is large and finite."""
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
GUARD = 1 << 16
"""Bytes before and after: an unmasked store of a whole block of 16,384 floats ends inside."""


def span(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Elements from the first to the last one of a strided tensor, inclusive."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride))


def fenced(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: str,
    poison: int,
) -> torch.Tensor:
    """A tensor of poison between two guards of poison; it starts on a 64 KiB offset."""
    size = span(shape, stride) * dtype.itemsize
    block = torch.full((GUARD + size + GUARD,), poison, dtype=torch.uint8, device=device)
    padded = block[GUARD : GUARD + size]
    if size == 0:
        return padded.view(dtype).as_strided(shape, stride)
    # `view` wants whole elements; as_strided then restores the wanted layout.
    return padded.view(dtype).as_strided(shape, stride, GUARD // dtype.itemsize)


def fence_like(value: Any, device: str, poison: int, contiguous: bool) -> Any:
    """A copy of an input between guards, in its own layout unless `contiguous`."""
    if not isinstance(value, torch.Tensor):
        return value
    if contiguous or any(step < 0 for step in value.stride()):
        value = value.contiguous()
    made = fenced(tuple(value.shape), value.stride(), value.dtype, device, poison)
    if 0 in value.stride() and value.numel():  # expanded: write each element once
        flat = value.as_strided((span(value.shape, value.stride()),), (1,), value.storage_offset())
        made.as_strided(flat.shape, (1,), made.storage_offset()).copy_(flat)
    else:
        made.copy_(value)
    return made


class Poisoned(TorchDispatchMode):
    """Fills and fences every uninitialised tensor that is allocated while it is active."""

    NAMES = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})

    def __init__(self, poison: int):
        super().__init__()
        self.poison = poison
        self.blocks: list[int] = []
        """Storage addresses of the blocks made here."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if func._overloadpacket.__name__ not in self.NAMES or not _fenceable(made):
            return made
        fence = fenced(tuple(made.shape), made.stride(), made.dtype, str(made.device), self.poison)
        self.blocks.append(fence.untyped_storage().data_ptr())
        return fence


def _fenceable(value: Any) -> bool:
    return (
        type(value) is torch.Tensor
        and value.layout is torch.strided
        and value.device.type in ("cpu", "cuda")
        and not value.is_quantized
    )


@contextmanager
def poisoned(poison: int, active: bool) -> Iterator[Poisoned]:
    """The mode, or one that does nothing."""
    mode = Poisoned(poison)
    if not active:
        yield mode
        return
    with mode:
        yield mode


def ship(value: Any, path: Path, blocks: set[int], shares: str = "") -> Shipped:
    """Writes the whole block of a tensor to `path`; `blocks` are storages that carry guards."""
    if type(value) is not torch.Tensor or value.layout is not torch.strided:
        kind = type(value).__name__ if type(value) is not torch.Tensor else str(value.layout)
        return Shipped(
            path="", shape=(), stride=(), dtype="", device="", offset=0, fenced=False, kind=kind
        )
    is_fenced = value.untyped_storage().data_ptr() in blocks
    if is_fenced:
        storage = value.untyped_storage()
        raw = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage)
        offset = value.storage_offset() * value.element_size()
        stride = value.stride()
    else:
        stride = value.stride()
        flat = value.detach().as_strided((span(value.shape, stride),), (1,), value.storage_offset())
        raw, offset = flat.contiguous().view(torch.uint8), 0
    raw.cpu().numpy().tofile(path)
    return Shipped(
        path=str(path),
        shape=tuple(value.shape),
        stride=tuple(stride),
        dtype=dtype_name(value.dtype),
        device=str(value.device),
        offset=offset,
        fenced=is_fenced,
        shares=shares,
    )


class Received:
    """The oracle's view of a shipped tensor."""

    def __init__(self, shipped: Shipped):
        self.shipped = shipped
        size = Path(shipped.path).stat().st_size
        self.raw = (
            torch.from_file(shipped.path, shared=False, size=size, dtype=torch.uint8)
            if size
            else torch.empty(0, dtype=torch.uint8)
        )

    def tensor(self) -> torch.Tensor:
        """The values in the layout they had."""
        s = self.shipped
        dtype = dtype_of(s.dtype)
        size = span(s.shape, s.stride) * dtype.itemsize
        body = self.raw[s.offset : s.offset + size]
        flat = body.view(dtype) if size else torch.empty(0, dtype=dtype)
        return flat.as_strided(s.shape, s.stride, flat.storage_offset())

    def outside(self, poison: int) -> tuple[int, int]:
        """Bytes that no longer hold the poison before and after the tensor."""
        s = self.shipped
        if not s.fenced:
            return 0, 0
        size = span(s.shape, s.stride) * dtype_of(s.dtype).itemsize
        before, after = self.raw[: s.offset], self.raw[s.offset + size :]
        return int((before != poison).sum()), int((after != poison).sum())

    def gaps_written(self, poison: int) -> int:
        """Bytes changed in the holes of a strided layout, which belong to no element."""
        s = self.shipped
        dtype = dtype_of(s.dtype)
        elements = span(s.shape, s.stride)
        if not s.fenced or elements == torch.Size(s.shape).numel():
            return 0
        owned = torch.zeros(elements, dtype=torch.bool)
        owned.as_strided(s.shape, s.stride).fill_(True)
        size = elements * dtype.itemsize
        body = self.raw[s.offset : s.offset + size].view(elements, dtype.itemsize)
        return int((body[~owned] != poison).sum())

    def still_poison(self, poison: int) -> torch.Tensor:
        """For each element, whether all its bytes still hold the poison."""
        s = self.shipped
        dtype = dtype_of(s.dtype)
        elements = span(s.shape, s.stride)
        body = self.raw[s.offset : s.offset + elements * dtype.itemsize]
        # Compared as integers of the element's size, which is many times quicker than by bytes.
        whole = INTEGERS[min(dtype.itemsize, 8)]
        pattern = torch.full((8,), poison, dtype=torch.uint8).view(whole)[0]
        flat = body.view(whole) == pattern
        if dtype.itemsize == 16:
            flat = flat.view(-1, 2).all(-1)
        return flat.as_strided(s.shape, s.stride)
