"""What a reference does step by step: its longest sum, its products, where it leaves float64."""

from __future__ import annotations

import math
import sys
import traceback

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..op import Op

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
}
"""Terms that one output element of an aten operation sums, from its arguments."""


DOTS = {"mm", "bmm", "addmm", "baddbmm", "dot", "mv", "convolution"}


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
        name = func._overloadpacket.__name__
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, torch.Tensor)]
        results = [v for v in tree_leaves(made) if isinstance(v, torch.Tensor)]
        self.dots |= name in DOTS
        if name in LENGTH:
            self.terms = max(self.terms, int(LENGTH[name](args)))
        elif given and results and results[0].numel():
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
