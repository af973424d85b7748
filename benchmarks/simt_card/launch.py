"""Launches kernels on the first GPU, each once, for a profiler to watch.

`python launch.py FILE`: FILE is what `Job.save` wrote. After it, FILE.out holds the arrays as the
kernels left them, in the order of the launches. Needs NumPy and cuda-bindings and no more, so that
it starts quickly under a profiler.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Argument = np.ndarray | bytes
"""An array, passed as the address of its copy on the card, or a parameter's bytes."""
Launch = dict[str, Any]
"""cubin: path; entry; grid; block; shared: dynamic bytes; args: list of Argument; garbage:
positions of arrays that are not copied to the card; read: whether the arrays are read afterwards
(default). The card's memory is freed at exit."""


def save(path: Path, launches: list[Launch]) -> None:
    path.write_bytes(pickle.dumps(launches))


def results(path: Path) -> list[list[np.ndarray]]:
    """The arrays of each launch, as it left them."""
    made: list[list[np.ndarray]] = pickle.loads(path.with_suffix(".out").read_bytes())
    return made


def main(path: Path) -> int:
    from cuda.bindings import driver

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        error, *values = function(*arguments)
        if int(error) != 0:
            raise RuntimeError(f"{function.__name__}: {error!r}")
        return values[0] if values else None

    call(driver.cuInit, 0)
    context = call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, 0))
    call(driver.cuCtxSetCurrent, context)
    modules: dict[str, Any] = {}
    done = []
    for launch in pickle.loads(path.read_bytes()):
        if launch["cubin"] not in modules:
            image = Path(launch["cubin"]).read_bytes()
            modules[launch["cubin"]] = call(driver.cuModuleLoadData, image)
        module = modules[launch["cubin"]]
        function = call(driver.cuModuleGetFunction, module, launch["entry"].encode())
        if launch["shared"] > 48 * 1024:
            kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call(driver.cuFuncSetAttribute, function, kind, launch["shared"])
        held, places, arrays = [], [], []
        for position, argument in enumerate(launch["args"]):
            if isinstance(argument, bytes):
                held.append(ctypes.create_string_buffer(argument, len(argument)))
                continue
            array = np.ascontiguousarray(argument)
            place = call(driver.cuMemAlloc, max(array.nbytes, 1))
            if position not in launch.get("garbage", ()):
                call(driver.cuMemcpyHtoD, place, array.ctypes.data, array.nbytes)
            places.append(place)
            arrays.append(array.copy())
            held.append(ctypes.c_void_p(int(place)))
        pointers = (ctypes.c_void_p * max(len(held), 1))(*(ctypes.addressof(h) for h in held))
        grid, block = launch["grid"], launch["block"]
        address = ctypes.addressof(pointers)
        call(driver.cuLaunchKernel, function, *grid, *block, launch["shared"], 0, address, 0)
        call(driver.cuCtxSynchronize)
        for place, array in zip(places, arrays if launch.get("read", True) else ()):
            call(driver.cuMemcpyDtoH, array.ctypes.data, place, array.nbytes)
        done.append(arrays)
    path.with_suffix(".out").write_bytes(pickle.dumps(done))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
