"""A tensor as the oracle gets it: its whole block of bytes in a file, and what is read out of that.

What lies outside of a tensor, in the holes of its layout, and where its poison was left, tells what
a kernel wrote and what it did not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..inputs import dtype_name, dtype_of
from .buffers import GUARD, INTACT, INTEGERS, is_dense, kind_of, outside, span, sparse
from .protocol import Shipped
from .shipping import write


def ship(
    value: Any, path: Path, blocks: set[int], shares: str = "", exact: bool = False
) -> Shipped:
    """Writes the whole block of a tensor to `path`; `blocks` are storages that carry guards."""
    if not is_dense(value):
        kind = kind_of(value)
        return Shipped(
            path="", shape=(), stride=(), dtype="", device="", offset=0, fenced=False, kind=kind
        )
    if sparse(value):
        value = value.contiguous()
    is_fenced = value.untyped_storage().data_ptr() in blocks
    offset = value.storage_offset() * value.element_size() if is_fenced else 0
    stride = value.stride()
    write(raw_of(value, is_fenced), path)
    return Shipped(
        path=str(path),
        shape=tuple(value.shape),
        stride=tuple(stride),
        dtype=dtype_name(value.dtype),
        device=str(value.device),
        offset=offset,
        fenced=is_fenced,
        exact=is_fenced and exact,
        shares=shares,
    )


def raw_of(value: torch.Tensor, whole: bool) -> torch.Tensor:
    """The bytes of a tensor in the order in which they lie; whole: those of all its block."""
    if whole:
        raw = torch.empty(0, dtype=torch.uint8, device=value.device)
        return raw.set_(value.untyped_storage())
    size = span(tuple(value.shape), value.stride())
    flat = value.detach().as_strided((size,), (1,), value.storage_offset())
    return flat.contiguous().view(torch.uint8)


def guards(block: torch.Tensor, poison: int) -> tuple[int, int]:
    """Bytes that were changed in the guard before and in the one after a tensor of poison."""
    was = outside(poison)
    return _changed(block[:GUARD], was), _changed(block[-GUARD:], was)


def _changed(guard: torch.Tensor, was: int) -> int:
    """Bytes that are no longer what all of them were; equality of bytes is the quick answer."""
    held = guard.cpu().numpy()
    return 0 if held.tobytes() == INTACT[was] else int((held != was).sum())


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
        """Bytes that were changed in the guards of the tensor's block.

        What lies between them belongs to whoever allocated it: a view of it may be returned.
        """
        return guards(self.raw, poison) if self.shipped.fenced else (0, 0)

    def gaps_written(self, poison: int) -> int:
        """Bytes changed in the holes of a strided layout, which belong to no element."""
        s = self.shipped
        dtype = dtype_of(s.dtype)
        elements = span(s.shape, s.stride)
        if not s.exact or elements == torch.Size(s.shape).numel():
            return 0
        owned = torch.zeros(elements, dtype=torch.bool)
        owned.as_strided(s.shape, s.stride).fill_(True)
        size = elements * dtype.itemsize
        body = self.raw[s.offset : s.offset + size].view(elements, dtype.itemsize)
        return int((body[~owned] != poison).sum())

    def holds(self, poison: int) -> torch.Tensor:
        """For each element, whether all its bytes hold the poison."""
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
