"""Vector addition by one thread, one block and many, in explicit and in managed memory, on a GPU.

    python -m benchmarks.vecadd_memory [--n 33554432] [--repeats 5] [--variant cuda/one_block ...]
        [--most 4] [--to FILE]

Memory that the driver moves by pages is timed three ways: `managed`, whose pages lie on the host
when the kernel starts, so that every first touch is a fault and a copy inside of its time; the same
again, `managed, resident`; and `managed, prefetched`, with the seconds of the prefetch beside it.
`explicit` is memory of the device. One call between two events each, medians of the repeats; every
result is compared with a + b. --most: GB of all vectors, beyond which nothing is allocated.
A line each, printed and in benchmarks/results/<card>/vecadd_memory.jsonl.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.build import Kernel, build, find_variant
from assay.errors import AssayError
from assay.inputs import to_meta
from assay.ops.vecadd import vecadd
from assay.types import Case
from benchmarks.first_operators import RESULTS, folder_of

VARIANTS = ("cuda/one_thread", "cuda/one_block", "cuda/naive", "cuda/vectorised")
DEVICE = 0


class Managed:
    """Managed memory of n float32, seen by NumPy on the host and by torch on the device."""

    def __init__(self, n: int):
        from cuda.bindings import driver

        self.bytes = 4 * n
        flags = driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value
        self._driver = driver
        self._pointer = int(_checked(driver.cuMemAllocManaged(self.bytes, flags)))
        host = (ctypes.c_float * n).from_address(self._pointer)
        self.host = np.ctypeslib.as_array(host)
        self.__cuda_array_interface__ = {
            "shape": (n,), "typestr": "<f4", "data": (self._pointer, False), "version": 3,
        }  # fmt: skip
        self.tensor = torch.as_tensor(self, device=f"cuda:{DEVICE}")

    def prefetch(self) -> None:
        """Moves all of its pages to the device, on the current stream."""
        driver = self._driver
        place = driver.CUmemLocation()
        place.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        place.id = DEVICE
        stream = torch.cuda.current_stream().cuda_stream
        _checked(driver.cuMemPrefetchAsync(self._pointer, self.bytes, place, 0, stream))

    def free(self) -> None:
        del self.tensor, self.host
        _checked(self._driver.cuMemFree(self._pointer))


def _checked(answer: tuple[Any, ...]) -> Any:
    status, *values = answer
    if status.value:
        raise AssayError(f"the driver refuses managed memory: {status.name}")
    return values[0] if values else None


@contextmanager
def managed(n: int) -> Iterator[tuple[Managed, ...]]:
    """Three vectors, freed at the end."""
    made: list[Managed] = []
    try:
        made += [Managed(n) for _ in range(3)]
        yield tuple(made)
    finally:
        torch.cuda.synchronize()
        for one in made:
            one.free()


def kernel_of(name: str, inputs: tuple[torch.Tensor, ...]) -> Kernel:
    """The variant built for such inputs, whatever sizes it is shown for."""
    variant = find_variant(vecadd, name)
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability(DEVICE))
    metas = tuple(to_meta(x) for x in inputs)
    specs = [(tuple(inputs[0].shape), inputs[0].dtype)]
    knobs = variant.configurations()[0]
    return build(vecadd, variant, knobs, Case(), metas, specs, f"cuda:{DEVICE}", arch)


def timed(run: Callable[[], object]) -> float:
    """Seconds between two events round one call on an idle GPU."""
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def measured(name: str, n: int, repeats: int) -> Iterator[dict[str, Any]]:
    """The lines of one variant. Raises AssayError for a wrong sum, or memory that there is not."""
    a, b = (torch.randn(n, device=f"cuda:{DEVICE}") for _ in range(2))
    right, y = (a + b).cpu(), torch.empty_like(a)
    kernel = kernel_of(name, (a, b))
    kernel.run([torch.empty_like(a)], [a, b])  # loads it

    def line(memory: str, taken: list[float], **more: float) -> dict[str, Any]:
        middle = statistics.median(taken)
        return {"variant": name, "n": n, "memory": memory, "seconds": middle,
                "samples": taken, "rate": 12 * n / middle, **more}  # fmt: skip

    def check(memory: str, found: torch.Tensor) -> None:
        if not torch.equal(found.cpu(), right):
            raise AssayError(f"{name} in {memory} memory: another sum than torch's")

    taken = [timed(lambda: kernel.run([y], [a, b])) for _ in range(repeats)]
    check("explicit", y)
    yield line("explicit", taken)
    with managed(n) as (ma, mb, my):

        def to_host() -> None:
            torch.cuda.synchronize()
            ma.host[:], mb.host[:], my.host[:] = a.cpu().numpy(), b.cpu().numpy(), 0.0

        def call() -> object:
            return kernel.run([my.tensor], [ma.tensor, mb.tensor])

        def prefetch() -> None:
            for one in (ma, mb, my):
                one.prefetch()

        first, again, fetched, moved = [], [], [], []
        for _ in range(repeats):
            to_host()
            first.append(timed(call))
            again.append(timed(call))
            check("managed", my.tensor)
            to_host()
            moved.append(timed(prefetch))
            fetched.append(timed(call))
            check("prefetched managed", my.tensor)
        yield line("managed", first)
        yield line("managed, resident", again)
        yield line("managed, prefetched", fetched, prefetch_seconds=statistics.median(moved))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1 << 25)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--most", type=float, default=4.0, help="GB that may be allocated")
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU here: memory that moves between host and device needs one")
    needed = 7 * 4 * given.n / 1e9  # a, b, y, a + b on the host, and three managed
    if needed > given.most:
        sys.exit(f"--n {given.n:,}: {needed:.1f} GB in all; --most {given.most:g} GB allows less")
    card = torch.cuda.get_device_name(DEVICE)
    place = given.to or RESULTS / folder_of(card) / "vecadd_memory.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w") as file:
        for name in given.variant or VARIANTS:
            try:
                for row in measured(name, given.n, given.repeats):
                    tell(file, {"card": card, **row})
            except AssayError as error:
                tell(file, {"card": card, "variant": name, "reason": str(error)})


def tell(file: Any, row: dict[str, Any]) -> None:
    file.write(json.dumps(row) + "\n")
    file.flush()
    if "reason" in row:
        print(f"{row['variant']:16} not run: {row['reason']}", flush=True)
        return
    beside = row.get("prefetch_seconds")
    said = f", after {1e3 * beside:.2f} ms of prefetching" if beside is not None else ""
    spread = f"{1e3 * min(row['samples']):.3f} to {1e3 * max(row['samples']):.3f}"
    print(
        f"{row['variant']:16} {row['memory']:20} {1e3 * row['seconds']:10.3f} ms ({spread}), "
        f"{row['rate'] / 1e9:8.1f} GB/s{said}",
        flush=True,
    )


if __name__ == "__main__":
    main()
