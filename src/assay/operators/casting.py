"""Autocast rules: what an operator's floating-point inputs become under torch.autocast."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch

RULES = ("widest", "float32", "lower")
DEVICES = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}
KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(
    torch._C.DispatchKey.AutocastCUDA
)
NARROW = (torch.float16, torch.bfloat16, torch.float32)
"""Only these are cast, as by torch: float64 stays what it is."""


def register_autocast(library: torch.library.Library, name: str, overload: Any, rule: str) -> None:
    """Registers a rule of RULES for an operator, on the CPU and on GPUs."""
    for device, key in DEVICES.items():

        def run(*args: Any, device: str = device) -> Any:
            # Under this guard the call goes on to autograd instead of coming back here.
            with torch._C._ExcludeDispatchKeyGuard(KEYS):
                return overload(*_cast(args, rule, device))

        library.impl(name, run, key)


def _cast(args: tuple[Any, ...], rule: str, device: str) -> list[Any]:
    cast = [x for x in args if isinstance(x, torch.Tensor) and x.dtype in NARROW]
    if not cast:
        return list(args)
    if rule == "lower":
        dtype = torch.get_autocast_dtype(device)
    elif rule == "float32":
        dtype = torch.float32
    else:
        dtype = reduce(torch.promote_types, [x.dtype for x in cast])
    known = {id(x) for x in cast}
    return [x.to(dtype) if id(x) in known else x for x in args]
