"""What a reference does step by step: its longest sum, its products, where it leaves float64."""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..op import Op


def _landed(where: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], like: torch.Tensor) -> int:
    """The most that an element gets, where `where` adds a tensor of ones to one of zeros."""
    none = torch.zeros(like.shape, dtype=torch.int64, device=like.device)
    got = where(none, torch.ones((), dtype=torch.int64, device=like.device))
    return int(got.max()) if got.numel() else 1


def _put(a: Sequence[Any]) -> int:
    """Of index_put(x, indices, values, accumulate)."""
    if len(a) < 4 or not a[3]:
        return 1
    return _landed(lambda x, one: x.index_put(a[1], one, accumulate=True), a[0])


def _scattered(a: Sequence[Any]) -> int:
    """Of scatter_add(x, dim, index, values), and scatter_reduce(..., reduce)."""
    if len(a) > 4 and a[4] not in ("sum", "mean", "prod"):
        return 1  # it chooses
    return _landed(lambda x, one: x.scatter_add(a[1], a[2], one.expand(a[2].shape)), a[0])


def _added(a: Sequence[Any]) -> int:
    """Of index_add(x, dim, index, values), and index_reduce(..., reduce): rows that meet in one."""
    return 1 if len(a) > 4 and a[4] not in ("mean", "prod") else _together(a[2])


def _together(index: torch.Tensor) -> int:
    """How often the most frequent number is there."""
    return int(index.reshape(-1).bincount().max()) if index.numel() else 1


LOW = {torch.float32, torch.float16, torch.bfloat16, torch.complex64}
"""What is no truth."""
LENGTH = {
    "mm": lambda a: a[0].shape[1],
    "bmm": lambda a: a[0].shape[2],
    "addmm": lambda a: a[1].shape[1],
    "baddbmm": lambda a: a[1].shape[2],
    "dot": lambda a: a[0].numel(),
    "mv": lambda a: a[0].shape[1],
    "convolution": lambda a: a[1].numel() // max(1, a[1].shape[0]),
    "_softmax": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "_log_softmax": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "native_layer_norm": lambda a: math.prod(a[1]),
    "cumsum": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "cumprod": lambda a: a[0].shape[a[1]] if a[0].dim() else 1,
    "_fft_c2c": lambda a: a[0].numel(),
    "_fft_r2c": lambda a: a[0].numel(),
    "_fft_c2r": lambda a: a[0].numel(),
    "index_add": _added,
    "index_reduce": _added,
    "scatter_add": _scattered,
    "scatter_reduce": _scattered,
    "index_put": _put,
    "_unsafe_index_put": _put,
    "embedding_dense_backward": lambda a: _together(a[1]),
}
"""Terms that one output element of an aten operation sums, from its arguments."""


DOTS = {"mm", "bmm", "addmm", "baddbmm", "dot", "mv", "convolution"}

CHOOSES = {
    *("all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "kthvalue"),
    *("max", "max_pool2d_with_indices", "median", "min", "mode", "sort", "topk", "unique"),
    *("embedding", "gather", "index", "index_select", "masked_select", "take"),
    *("new_empty", "new_full", "new_ones", "new_zeros"),
}
"""Operations whose outputs are smaller than what they are given, and of which no output sums."""


class watching(TorchDispatchMode):
    """Notes the longest reduction, and every step that leaves float64, with its line."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled under it, and True imports torch._dynamo: most of a child's life.
        return False

    def __init__(self, op: Op):
        super().__init__()
        self.op, self.terms, self.dots = op, 1, False
        self.low: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        name = func._overloadpacket.__name__.rstrip("_")  # in place it sums as much
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, torch.Tensor)]
        results = [v for v in tree_leaves(made) if isinstance(v, torch.Tensor)]
        self.dots |= name in DOTS
        if name in LENGTH:
            self.terms = max(self.terms, int(LENGTH[name](args)))
        elif not (func.is_view or name in CHOOSES) and given and results and results[0].numel():
            self.terms = max(self.terms, max(v.numel() for v in given) // results[0].numel())
        low = [r.dtype for r in results if r.dtype in LOW]
        if low and given:
            self.low.append(f"{name} gives {low[0]} {_line(self.op)}")
        return made


def _line(op: Op) -> str:
    """Where in the user's file the reference is right now."""
    wanted = getattr(getattr(op.reference, "__code__", None), "co_filename", None)
    for frame in reversed(traceback.extract_stack(sys._getframe(2))):
        if frame.filename == wanted:
            return f"at {frame.filename}:{frame.lineno}: {frame.line}"
    return "in the reference"
