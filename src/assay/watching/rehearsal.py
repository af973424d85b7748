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
    """NVRTC, which loads its built-in headers with the first program, and CUDA's own objects."""
    from cuda.bindings import nvrtc
    from cuda.core import Device

    Device(torch.device(device).index or 0).set_current()
    major, minor = torch.cuda.get_device_capability(device)
    status, program = nvrtc.nvrtcCreateProgram(PROGRAM, b"ahead.cu", 0, [], [])
    options = [f"--gpu-architecture=sm_{major}{minor}".encode()]
    status, *_ = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status):
        raise RuntimeError(f"NVRTC does not compile an empty kernel: {status}")
    nvrtc.nvrtcDestroyProgram(program)


PROGRAM = b'extern "C" __global__ void ahead() {}'


def _triton() -> None:
    """Triton's driver and compiler, which import and load most with the first kernel."""
    from .ahead import compiled

    compiled()
