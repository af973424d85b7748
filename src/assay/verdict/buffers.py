"""Buffers that tell: tensors between guards, filled with poison, shipped whole to the oracle.

A tensor lives in the middle of a larger block of bytes. Everything outside it holds one poison
byte, and every output before the run another; the oracle later looks at all of it. The two change
places between two runs: what survives in both was never written, whatever the right answer is, and
an output that holds the outside's byte in both was read from there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .protocol import POISONS

if TYPE_CHECKING:
    from ..simt import Watch

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
GUARD = 1 << 16
"""Bytes before and after: an unmasked store of a whole block of 16,384 floats ends inside."""
INTACT = {poison: bytes([poison]) * GUARD for poison in POISONS}
SPARSE = 1 << 28
"""Elements that a tensor spans from which it may be too sparse to be fenced and shipped whole."""
ALIGNED = 16
"""Bytes of the widest vector load."""


def outside(poison: int) -> int:
    """The poison of the guards, where the tensors between them are filled with this one."""
    return POISONS[1 - POISONS.index(poison)]


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
    shift: int = 0,
) -> torch.Tensor:
    """A tensor of poison between two guards of the other; it starts on a 64 KiB offset.

    shift: bytes by which it starts later than that, where it must not be aligned.
    """
    made = _guarded(shape, stride, dtype, device, poison, shift)
    _body(made).fill_(poison)
    return made


def _guarded(
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: torch.dtype,
    device: str,
    poison: int,
    shift: int,
) -> torch.Tensor:
    """The same with nothing in it yet."""
    size, start = span(shape, stride) * dtype.itemsize, GUARD + shift
    block = torch.empty((start + size + GUARD,), dtype=torch.uint8, device=device)
    block[:start].fill_(outside(poison))
    block[start + size :].fill_(outside(poison))
    padded = block[start : start + size]
    if size == 0:
        return padded.view(dtype).as_strided(shape, stride)
    # `view` wants whole elements; as_strided then restores the wanted layout.
    return padded.view(dtype).as_strided(shape, stride, start // dtype.itemsize)


def _body(value: torch.Tensor) -> torch.Tensor:
    """The bytes from the first to the last element of a strided tensor."""
    size = span(tuple(value.shape), value.stride())
    return value.as_strided((size,), (1,), value.storage_offset()).view(torch.uint8)


def fence_like(value: Any, device: str, poison: int, contiguous: bool) -> Any:
    """A copy of an input between guards, in its own layout unless `contiguous`."""
    if not isinstance(value, torch.Tensor):
        return value
    if contiguous:
        value = value.contiguous()
    if sparse(value):  # guards would lie gigabytes apart, and poison would fill what lies between
        made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
        return made.copy_(value)
    # A slice that starts between two vectors stays misaligned.
    shift = value.storage_offset() * value.dtype.itemsize % ALIGNED
    made = _guarded(tuple(value.shape), value.stride(), value.dtype, device, poison, shift)
    if not value.is_contiguous():  # nothing may lie between its elements by chance
        _body(made).fill_(poison)
    size = span(tuple(value.shape), value.stride())
    if size < value.numel():  # expanded or unfolded: write each element once
        flat = value.as_strided((size,), (1,), value.storage_offset())
        made.as_strided(flat.shape, (1,), made.storage_offset()).copy_(flat)
    else:
        made.copy_(value)
    return made


def sparse(value: torch.Tensor) -> bool:
    """Whether next to nothing of the memory that a tensor spans is its own."""
    return span(tuple(value.shape), value.stride()) > max(SPARSE, 64 * value.numel())


class Poisoned(TorchDispatchMode):
    """Fills and fences every uninitialised tensor that is allocated while it is active."""

    NAMES = frozenset(
        {
            "empty",
            "empty_like",
            "empty_permuted",
            "empty_strided",
            "new_empty",
            "new_empty_strided",
        }
    )
    FILLED = frozenset(
        {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones"}
        | {"full", "full_like", "new_full"}
    )
    """These are fenced too, since what writes past their end is found by the guards alone."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled under it, and True imports torch._dynamo: most of a child's life.
        return False

    def __init__(self, poison: int, watch: Watch | None = None):
        super().__init__()
        self.poison, self.watch = poison, watch
        self.fences: list[torch.Tensor] = []
        """Kept, so that guards can be looked at later and no address is given out twice."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name, kwargs = func._overloadpacket.__name__, kwargs or {}
        if name == "resize_" and _fenceable(args[0]):
            return self._resized(func, *args, **kwargs)
        out = kwargs.get("out")
        room = out.numel() if isinstance(out, torch.Tensor) else 0
        made = func(*args, **kwargs)
        if self.watch is not None:
            _note_writes(self.watch, func._schema, args, kwargs)
        if room and out.numel() > room and self._is_fence(out):
            self._moved(out)
        # What is empty has no room for guards; it can only be resized, which makes new memory.
        if name not in self.NAMES and name not in self.FILLED:
            return made
        return self._fence(made, name in self.FILLED) if _fenceable(made) and made.numel() else made

    def _fence(self, made: torch.Tensor, filled: bool) -> torch.Tensor:
        """Its double between guards, with its values if it has any."""
        fence = fenced(tuple(made.shape), made.stride(), made.dtype, str(made.device), self.poison)
        if filled:
            fence.copy_(made)
        self.fences.append(fence)
        if self.watch is not None:
            start, size = inside(fence)
            self.watch.memory.add(start, size, name="its own buffer", written=filled, keep=fence)
        return fence

    def _is_fence(self, value: torch.Tensor) -> bool:
        block = value.untyped_storage().data_ptr()
        return any(fence.untyped_storage().data_ptr() == block for fence in self.fences)

    def _resized(self, func: Any, value: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """What outgrows its memory gets new memory with guards: its elements, then poison."""
        meta = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        wanted = func(meta, *args, **kwargs)
        size = span(tuple(wanted.shape), wanted.stride()) * value.element_size()
        storage = value.untyped_storage()
        end = storage.nbytes() - (GUARD if self._is_fence(value) else 0)
        start = value.storage_offset() * value.element_size()
        if start + size <= end:
            return cast(torch.Tensor, func(value, *args, **kwargs))
        fence = self._fence(torch.empty_like(wanted, device=value.device), False)
        kept = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage)[start:end]
        if kept.numel():
            raw = kept.new_empty(0).set_(fence.untyped_storage())
            raw[GUARD : GUARD + kept.numel()].copy_(kept)
        return value.set_(fence)

    def _moved(self, out: torch.Tensor) -> None:
        """Torch made room for a result in our guards: it moves to memory of its own."""
        block = out.untyped_storage().data_ptr()
        self.fences = [f for f in self.fences if f.untyped_storage().data_ptr() != block]
        out.set_(self._fence(out, True))


def inside(fence: torch.Tensor) -> tuple[int, int]:
    """Address and bytes of what lies between the guards of a fenced tensor."""
    size = span(tuple(fence.shape), fence.stride()) * fence.element_size()
    return fence.data_ptr(), size


def _note_writes(watch: Watch, schema: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """What an operation of torch writes to has been written, by other than a kernel."""
    for index, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = args[index] if index < len(args) else kwargs.get(argument.name)
        for tensor in value if isinstance(value, (list, tuple)) else [value]:
            if tensor is not None and is_dense(tensor):
                watch.memory.touched(tensor.data_ptr())


def _fenceable(value: Any) -> bool:
    return (
        type(value) is torch.Tensor
        and value.layout is torch.strided
        and value.device.type in ("cpu", "cuda")
        and not value.is_quantized
    )


@contextmanager
def poisoned(poison: int, active: bool, watch: Watch | None = None) -> Iterator[Poisoned]:
    """The mode, or one that does nothing. watch: is told of what it allocates."""
    mode = Poisoned(poison, watch)
    if not active:
        yield mode
        return
    with mode:
        yield mode


def is_dense(value: Any) -> bool:
    """Whether it is a plain tensor whose memory can be looked at."""
    return kind_of(value) == "tensor"


def kind_of(value: Any) -> str:
    """`tensor` for a plain dense one, which is all that an output may be; else what it is.

    Anything else may compute its values only when somebody looks, outside of every timed call.
    """
    if type(value) is not torch.Tensor:
        return type(value).__name__
    if value.layout is not torch.strided:
        return str(value.layout)
    if value.device.type == "meta":
        return "meta tensor"
    if value.is_quantized:
        return "quantized tensor"
    if torch._is_functional_tensor(value) or torch._is_zerotensor(value):
        return "lazy tensor"
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return "tensor of torch.func"
    return "tensor"


def plain(value: Any) -> Any:
    """A NumPy array as the tensor over its memory; a parameter or a conjugate view as its values.

    A class derived from one of them is left as it is: its own code would compute what it holds.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) in (numpy.ndarray, *numpy.sctypeDict.values()):
        return torch.from_numpy(numpy.ascontiguousarray(value))
    if type(value) is torch.nn.Parameter:
        return value.detach()
    return value.resolve_conj().resolve_neg() if is_dense(value) else value


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have a byte in common; views side by side in one block have none."""
    if not one.numel() or not other.numel() or one.device != other.device:
        return False
    start = min(one.data_ptr(), other.data_ptr())
    end = max(_end(one), _end(other))
    if start == end or max(one.data_ptr(), other.data_ptr()) >= min(_end(one), _end(other)):
        return False
    taken = torch.zeros(end - start, dtype=torch.bool)
    _bytes_of(one, taken, start).fill_(True)
    return bool(_bytes_of(other, taken, start).any())


def _end(value: torch.Tensor) -> int:
    return value.data_ptr() + span(tuple(value.shape), value.stride()) * value.element_size()


def _bytes_of(value: torch.Tensor, taken: torch.Tensor, start: int) -> torch.Tensor:
    """The part of a map of bytes that a tensor covers."""
    size = value.element_size()
    strides = tuple(step * size for step in value.stride())
    return taken.as_strided((*value.shape, size), (*strides, 1), value.data_ptr() - start)
