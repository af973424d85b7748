"""`numba`: @cuda.jit kernels. Without a GPU their PTX is run on the CPU, watched; what can't be
run so goes to Numba's simulator, within a budget.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from importlib import metadata
from typing import Any

from ..errors import NotRun
from . import NO_GPU, Here, watches

THREAD_SECONDS = 0.37e-3
"""What one thread costs in the simulator; seen on a 2-core Xeon."""


def here(device: str) -> Here:
    if importlib.util.find_spec("numba") is None:
        return Here(reason="Numba is not installed: pip install 'assay[numba]'")
    if device.startswith("cuda"):
        if importlib.util.find_spec("numba_cuda") is None:
            return Here(reason="numba-cuda is not installed: pip install 'assay[numba]'")
        return Here(judge=device, timed=True)
    if importlib.util.find_spec("numba_cuda") is not None and watches():
        return Here(judge="simt", reason=NO_GPU, env={"NUMBA_ENABLE_CUDASIM": "0"})
    return stepped()


def stepped() -> Here:
    """The simulator: a Python thread for each of the kernel's."""
    return Here(
        judge="simulator",
        reason="no GPU: judged in the simulator",
        env={"NUMBA_ENABLE_CUDASIM": "1"},
    )


def ready() -> None:
    """Launches that name no stream go to torch's current one, as those of every other way do.

    Numba's own default is the driver's default stream, which torch's side streams do not wait for.
    """
    from numba.cuda.dispatcher import CUDADispatcher

    fits()
    if getattr(CUDADispatcher.__getitem__, "on_current_stream", False):
        return
    configured = CUDADispatcher.__getitem__

    def on_current_stream(self: Any, how: Any) -> Any:
        stream = _current_stream()
        if stream is not None and isinstance(how, tuple) and (len(how) == 2 or not how[2]):
            how = (*how[:2], stream, *how[3:])
        return configured(self, how)

    on_current_stream.on_current_stream = True  # type: ignore[attr-defined]
    CUDADispatcher.__getitem__ = on_current_stream


def fits() -> None:
    """Raises NotRun if numba-cuda and NumPy don't go together, which Numba says at a first launch.

    numba-cuda up to 0.30 overloads names that NumPy 2.5 has no longer.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        return
    try:
        importlib.import_module("numba.cuda.np.arrayobj")
    except ModuleNotFoundError:  # another layout of numba-cuda, and nothing is known against it
        return
    except (AttributeError, ImportError) as error:
        versions = " and ".join(f"{n} {metadata.version(n)}" for n in ("numba-cuda", "numpy"))
        raise NotRun(
            f"{versions} don't go together ({error}): pip install 'numpy<2.5', or a newer "
            "numba-cuda"
        ) from error


_streams: dict[int, Any] = {}


def _current_stream() -> Any:
    """torch's current stream as Numba takes it; None if that is the driver's default stream."""
    import torch
    from numba import cuda

    handle = torch.cuda.current_stream().cuda_stream
    if handle and handle not in _streams:
        _streams[handle] = cuda.external_stream(handle)
    return _streams.get(handle)


def watch(watching: Any) -> None:
    """Hands launches of this process to a `simt.Watch`."""
    from ..simt.adapters import numba

    numba.install(watching.run)


def refuses(dtypes: list[Any]) -> str:
    """The simulator computes with NumPy's types; what those lack, the kernel refuses itself."""
    return ""


def limit(seconds: float) -> None:
    """Makes the simulator take torch tensors, and refuse or stop a launch that takes too long."""
    from numba import cuda
    from numba.cuda.simulator import kernel as simulator

    kernel = type(cuda.jit(lambda: None))
    call, run = kernel.__call__, simulator.BlockManager.run
    begun: list[float] = []

    def limited_call(self: Any, *args: Any) -> Any:
        threads = math.prod(self.grid_dim) * math.prod(self.block_dim)
        if threads * THREAD_SECONDS > seconds:
            raise NotRun(
                f"{threads:,} threads, about {threads * THREAD_SECONDS:.0f} s in the simulator; "
                "--slow runs it"
            )
        begun[:] = [time.monotonic()]
        return call(self, *[_array(a) for a in args])

    def limited_run(self: Any, *args: Any) -> Any:
        if begun and time.monotonic() - begun[0] > seconds:
            raise NotRun(f"more than {seconds:.0f} s in the simulator; --slow runs it")
        return run(self, *args)

    kernel.__call__, simulator.BlockManager.run = limited_call, limited_run


def _array(value: Any) -> Any:
    return value.detach().numpy() if hasattr(value, "data_ptr") else value
