"""The kernels of roofs.cu, compiled by NVRTC as any `cuda` variant is, launched by cuda.core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import LaunchError
from ..op import Op, Variant
from ..types import Case
from ..ways import Job
from ..ways.cuda import Built, compile_source
from ..ways.launch import arguments, check_geometry, configured_as

SOURCE = Path(__file__).parent / "roofs.cu"
NAMES = (
    "read_tiles",
    "read_walks",
    "write_tiles",
    "copy_tiles",
    "read_in_l2",
    "write_in_l2",
    "copy_in_l2",
    "read_shared",
    "multiply_add",
    "wait_on_count",
    "wait_on_round",
    "wait_on_timer",
    "nothing",
)


def compiled(arch: str, device: str = "cpu", say: Callable[[str], None] = lambda _: None) -> Built:
    """The kernels for an architecture, from the cache or by NVRTC. Raises BuildError."""
    op = Op("roofs", lambda x: x, lambda make: (make.normal(1),), cases=[{}])
    variant = Variant("cuda", "cuda", op.reference, True, SOURCE)
    job = Job(op, variant, {}, Case(), device, arch, lambda _: None, say)
    return compile_source(SOURCE, list(NAMES), job)


class Kernels:
    """Launches on torch's current stream, all of which is prepared but the launch itself."""

    def __init__(self, device: str, arch: str, say: Callable[[str], None]):
        import torch
        from cuda.core import Device, ObjectCode

        self._built = compiled(arch, device, say)
        self._torch_device = torch.device(device)
        self._device = Device(self._torch_device.index or 0)
        self._device.set_current()
        self._code = ObjectCode.from_cubin(self._built.cubin.read_bytes())
        self._streams: dict[int, Any] = {}

    def call(
        self,
        name: str,
        grid: int,
        block: int,
        *args: Any,
        cooperative: bool = False,
        stream: Any = None,
    ) -> Callable[[], None]:
        """A function that launches it once. args: tensors, and numbers in the declared types.

        cooperative: all blocks are resident at once, so that they may wait for each other.
        stream: one that `stream()` gave; default: torch's current one at the call.
        Raises LaunchError for what can't be launched.
        """
        from cuda.core import LaunchConfig, launch

        check_geometry(configured_as(name, grid, block, 0))
        kernel = self._code.get_kernel(self._built.lowered[name])
        given = [*arguments(name, args, self._built.parameters[name])]
        try:
            config = LaunchConfig(grid=grid, block=block, is_cooperative=cooperative)
        except (TypeError, RuntimeError, ValueError) as error:
            raise LaunchError(f"{name}: cuda.core can't launch it so: {error}") from None

        def run() -> None:
            launch(stream or self.stream(), config, kernel, *given)

        return run

    def stream(self) -> Any:
        """Torch's current stream, as cuda.core knows it."""
        import torch

        current = torch.cuda.current_stream(self._torch_device)
        if current.cuda_stream not in self._streams:
            self._streams[current.cuda_stream] = self._device.create_stream(current)
        return self._streams[current.cuda_stream]
