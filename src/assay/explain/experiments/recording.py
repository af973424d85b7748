"""The launches of one call, noted on the CPU without running them, and their copies on a GPU.

What a launcher does beside launching kernels (an operator of torch, a copy) is not noted: replays
are of its kernels alone. A launcher that looks at what a kernel computed can't be noted so.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ... import single
from ...errors import NotRun
from ...simt.adapters import Compiled, Size
from .launched import Launched

NOTED = ("cuda", "triton", "numba")


@dataclass
class Noting:
    """Keeps launches as adapters hand them on. In the place of a `simt.Watch`."""

    launches: list[Launched] = field(default_factory=list)

    def run(
        self, compiled: Compiled, grid: Size, block: Size, args: list[Any], shared: int
    ) -> None:
        self.launches.append(Launched(compiled, grid, block, tuple(args), shared))


def noted(one: single.Single, arch: str) -> tuple[Launched, ...]:
    """The launches of a call on its case, compiled for `arch`. Raises NotRun."""
    import torch

    way = one.variant.way
    if way not in NOTED:
        raise NotRun(f"the launches of {way} code are not noted: only of {', '.join(NOTED)}")
    noting = Noting()
    with _shimmed(way, noting, arch), torch.no_grad():
        placed = single.place(one, "cpu")
        kernel = single.built(placed, "cpu", arch, watch=noting)
        kernel.run(placed.outputs, list(placed.inputs))
    if not noting.launches:
        raise NotRun(f"{one.label} launched no kernel on this case")
    return tuple(noting.launches)


def _shimmed(way: str, noting: Noting, arch: str) -> AbstractContextManager[Any]:
    """What takes over launches of Triton and Numba for a while; a .cu is launched through `k`."""
    if way == "cuda":
        return nullcontext()
    adapter = importlib.import_module(f"assay.simt.adapters.{way}")
    made: AbstractContextManager[Any] = adapter.shim(noting.run, arch)
    return made


@dataclass
class Copies:
    """Memory of a GPU for each storage that launches point into, filled once."""

    device: str
    held: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """By address on the CPU: what lies there, and its copy."""

    def address(self, value: Any) -> int:
        """Where the same element lies on the GPU."""
        import torch

        tensor = value if hasattr(value, "untyped_storage") else torch.from_numpy(value)
        storage = tensor.untyped_storage()
        begin = storage.data_ptr()
        if begin not in self.held:
            raw = torch.empty(0, dtype=torch.uint8).set_(storage)
            self.held[begin] = (tensor, raw.to(self.device, copy=True))
        offset = int(tensor.data_ptr()) - begin
        return int(self.held[begin][1].data_ptr()) + offset
