"""What a process on a GPU does for the first time, done ahead: the context, libraries, kernels.

Each part is what the job itself does later, on a few bytes. Nothing of it is kept.
"""

from __future__ import annotations

import torch

from ..clock.gpu import gpu
from ..verdict.buffers import POISONS, fence_like, fenced


def on_gpu(device: str, kind: str, modules: list[str]) -> None:
    """Makes a CUDA context and loads what judging (`judge`) or timing (`clock`) launches.

    Raises what CUDA raises; the child then ends, and its log says why.
    """
    torch.cuda.set_device(device)
    _buffers(device)
    if kind == "clock":
        gpu(device)
    if "cuda.core" in modules:
        _cuda(device)
    if "triton" in modules:
        _triton()
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()


def _buffers(device: str) -> None:
    """Kernels of torch that place, poison, copy and compare."""
    for dtype in (torch.float32, torch.bfloat16):
        value = torch.ones(1024, dtype=dtype)
        placed = fence_like(value, device, POISONS[0], False)
        fenced((1024,), (1,), dtype, device, POISONS[0])
        placed.copy_(value)
        bool((placed.view(torch.uint8) == 1).all())
        placed.cpu()
    with torch.cuda.stream(torch.cuda.Stream(device)):
        torch.cuda._sleep(1)


def _cuda(device: str) -> None:
    """NVRTC, and CUDA's own objects."""
    from cuda.bindings import nvrtc
    from cuda.core import Device

    nvrtc.nvrtcVersion()
    Device(torch.device(device).index or 0).set_current()


def _triton() -> None:
    """Triton's driver, which is loaded with its first launch."""
    from triton.runtime import driver

    driver.active.get_current_target()
