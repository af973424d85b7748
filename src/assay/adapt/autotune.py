"""A user's own @triton.autotune kernel: its configurations become knobs, each judged alone.

In one buffer, configurations complete each other's work, and the tuner itself checks nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..types import Scalar
from .ways import autotuners


def configurations(function: Callable[..., Any]) -> list[dict[str, Scalar]]:
    """Every combination of the configurations of the kernels that a function reaches.

    One empty combination if there are none.
    """
    tuned = autotuners(function)
    lists = [[_label(config) for config in kernel.configs] for kernel in tuned.values()]
    return [dict(zip(tuned, combo)) for combo in itertools.product(*lists)]


def choose(function: Callable[..., Any], knobs: dict[str, Scalar]) -> dict[str, Scalar]:
    """Leaves each tuner only the configuration named in the knobs; returns the other knobs."""
    tuned = autotuners(function)
    for name, kernel in tuned.items():
        if name not in knobs:
            continue
        every = getattr(kernel, "_assay_configs", None) or list(kernel.configs)
        kernel._assay_configs = every
        kernel.configs = [c for c in every if _label(c) == knobs[name]]
        kernel.cache.clear()
    return {name: value for name, value in knobs.items() if name not in tuned}


def _label(config: Any) -> str:
    """A configuration in short: `BLOCK:128,num_warps:4`."""
    values = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    return ",".join(f"{name}:{value}" for name, value in values.items())
