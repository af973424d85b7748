"""How the layers call their C++: the function of a type, with the pointers and sizes it takes."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import NotSupported
from ...inputs import dtype_name

SUFFIXES = {torch.float32: "float32", torch.float64: "float64"}


def call(k: Any, name: str, *arguments: Any, dtype: torch.dtype) -> None:
    """Runs `name` of layers.cpp for float32 or float64. Raises NotSupported for any other."""
    if dtype not in SUFFIXES:
        supported = ", ".join(SUFFIXES.values())
        raise NotSupported(f"{dtype_name(dtype)}: supported: {supported}")
    getattr(k, f"{name}_{SUFFIXES[dtype]}")(*arguments)
