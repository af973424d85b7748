"""`compiled`: torch.compile of the reference, which needs nothing written."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Any

from ..op import Op
from . import Here


def here(device: str) -> Here:
    # One process a compile: its pool of workers would outlive its use and take the other cores.
    env = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    if device.startswith("cuda"):
        if importlib.util.find_spec("triton") is None:
            return Here(reason="Triton is not installed: pip install 'assay[triton]'")
        return Here(judge=device, timed=True, env=env)
    if not shutil.which(os.environ.get("CXX", "g++")):
        return Here(reason="no C++ compiler for Inductor: apt install g++")
    return Here(judge=device, timed=True, env=env)


MOST_COMPILATIONS = 1 << 12
"""Of one function: each case takes one, and each dtype and layout of the zoo. Past its limit, 8 by
itself, torch runs the rest uncompiled and only warns: eager's times under another name."""


def function(op: Op, *, dynamic: bool = False) -> Any:
    """The reference under torch.compile for exactly the shapes it is called with.

    dynamic: for any shape, so that the many sizes of the zoo need few compilations.
    """
    import torch

    torch._dynamo.config.recompile_limit = MOST_COMPILATIONS
    torch._dynamo.config.accumulated_recompile_limit = MOST_COMPILATIONS
    return torch.compile(op.reference, dynamic=dynamic)
