"""The child that runs an `eager` variant once on the CPU and notes the operators it dispatches.

Each of them that computes or moves something is a kernel or more on a GPU; views and empty tensors
are none. `_local_scalar_dense` is what `.item()` does: on a GPU the host waits for it.

Messages: {operators: [{name, bytes, waits}], bytes}, or {mistake | not_run: text}.
"""

from __future__ import annotations

from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .. import single
from ..errors import AssayError, BuildError, LaunchError, NotRun
from ..processes.channel import Channel
from ..target import Target
from ..types import Scalar

WAITS = ("_local_scalar_dense", "nonzero", "equal", "is_nonzero", "masked_select")
FREE = ("empty", "detach", "lift_fresh", "alias", "view", "reshape", "_unsafe_view")


def main(channel: Channel, target: dict, wanted: str, case: dict[str, Scalar]) -> None:
    """Sends one message."""
    try:
        channel.send(**_noted(msgspec.convert(target, Target), wanted, case))
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, BuildError, LaunchError) as error:
        channel.send(not_run=str(error))


class Noting(TorchDispatchMode):
    """Keeps every operator that does something, with the bytes that it reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[dict[str, Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        given = _tensors((args, kwargs or {}))
        returned = _tensors(made)
        name = str(func).removeprefix("aten.").split(".")[0]
        waits = name in WAITS
        held = {t.untyped_storage().data_ptr() for t in given}
        view = bool(returned) and not func._schema.is_mutable
        view = view and all(t.untyped_storage().data_ptr() in held for t in returned)
        if waits or not (view or not returned or name.startswith(FREE)):
            moved = sum(t.numel() * t.element_size() for t in (*given, *returned))
            self.operators.append({"name": name, "bytes": moved, "waits": waits})
        return made


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _noted(target: Target, wanted: str, case: dict[str, Scalar]) -> dict[str, Any]:
    one = single.pick(target, wanted, case)
    placed = single.place(one, "cpu")
    kernel = single.built(placed, "cpu", "")
    with torch.no_grad(), Noting() as noting:
        made = kernel.run(placed.outputs, list(placed.inputs))
    held = _tensors((list(placed.inputs), made))
    return {
        "operators": noting.operators,
        "bytes": sum(t.numel() * t.element_size() for t in held),
    }
