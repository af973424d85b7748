"""The library: a folder per operator, all its ways of being written together.

`assay.ops.softmax(x)` is a torch operator with autograd: on a GPU it runs what `assay tune` found
fastest on that card for such inputs, else the usual variant (operators/picking.py); on the CPU it
runs eager. `assay.ops.softmax.serves(x)` says which, and why. Inputs are those of the operator's
reference, in order. It is made at its first use; `assay.ops.served("softmax_grad")` makes others.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any


class _Library(types.ModuleType):
    """A package whose folders are not its attributes, since operators of the same name are.

    Python sets a submodule as an attribute when it is imported, and torch.compile calls no module.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, types.ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Library


@functools.cache
def served(name: str) -> Any:
    """The torch operator (an `assay.operators.define.TorchOp`) of a library operator or gradient.

    Raises TargetError for a name that there is not, OpError for what can't be an operator.
    """
    from ..operators.define import torch_op
    from ..operators.picking import TUNED
    from ..target import load_op, parse

    return torch_op(load_op(parse(name), name), TUNED, cpu="eager")


def __getattr__(name: str) -> Any:
    from ..target import library

    if name not in library():
        raise AttributeError(f"assay.ops has no operator {name!r}; `assay list` names them")
    return served(name)


def __dir__() -> list[str]:
    from ..target import library

    return sorted({*globals(), *library()})
