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


def function(op: Op) -> Any:
    """The reference under torch.compile for exactly the shapes it is called with."""
    import torch

    return torch.compile(op.reference, dynamic=False)
