"""What torch.compile would run on a GPU: the kernels that Inductor writes for one, judged here."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import torch

from .. import faults, ways
from ..errors import AssayError, NotRun
from ..op import Op
from ..simt import Watch
from .buffers import POISONS
from .protocol import Ran
from .shipped import ship


def applies() -> bool:
    """Whether GPU code that Inductor writes can be judged here."""
    return ways.watches() and importlib.util.find_spec("triton") is not None


def judged(op: Op, inputs: tuple[Any, ...], seed: int, folder: Path) -> dict[str, Any]:
    """{ran, arch, kernels, extern} of one run of the generated kernels, or {why}: not run.

    inputs: copies that may be changed.
    """
    watch = Watch()
    try:
        from ..simt.adapters import inductor

        done = inductor.run(op.reference, inputs, watch.run)
    except AssayError:
        raise
    except NotRun as reason:
        return {"why": str(reason)}
    except Exception as error:  # noqa: BLE001 - Inductor's own troubles are told, not a verdict
        return {"why": faults.told(error)}
    if not watch.archs:
        return {"why": f"it launches none of its own; vendor libraries: {', '.join(done.extern)}"}
    folder.mkdir(exist_ok=True)
    outputs = done.outputs if isinstance(done.outputs, (tuple, list)) else [done.outputs]
    shipped = [
        ship(
            value.detach() if isinstance(value, torch.Tensor) else value, folder / f"{index}", set()
        )
        for index, value in enumerate(outputs)
    ]
    ran = Ran(seed=seed, poison=POISONS[0], outputs=tuple(shipped), faults=tuple(watch.faults))
    return {
        "ran": msgspec.to_builtins(ran),
        "arch": watch.arch,
        "kernels": len(done.kernels),
        "extern": list(done.extern),
    }
