"""How fast compiled GPU kernels are judged on this CPU, beside what else could judge them.

    python benchmarks/simt_speed.py [FILE]

Softmax of 256 rows of 1,024 float32 in Triton and in Numba, through the launch that a user writes;
tiled matmul of 256 x 256 x 256 in CUDA C++ with all checks and with none; the time that translating
and building takes. Each time is the median of several calls in one process, with the fastest and
the slowest. The simulator takes minutes: it is timed on a few rows and scaled up by their number.
One line of JSON a figure, also to FILE.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

ROWS, COLUMNS, SIZE = 256, 1024, 256
SIMULATED_ROWS = 2
CALLS = 15

MATMUL = r"""
// C = A B, one 16 x 16 tile of C a block, tiles of A and B through shared memory.
// bytes 3 * n * n * 4 at least, FLOPs 2 * n^3; A, B, C: (n, n) float32.
#define TILE 16
extern "C" __global__ void matmul(float* c, const float* a, const float* b, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""


def timed(call: Callable[[], Any], calls: int = CALLS) -> dict[str, float]:
    """Seconds of a call: median, fastest, slowest. One call before is not counted."""
    call()
    found = []
    for _ in range(calls):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return {"median": statistics.median(found), "least": min(found), "most": max(found)}


def triton_softmax() -> Callable[[], Any]:
    """One program a row, the row in one block."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(y, x, n, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        i = tl.arange(0, BLOCK)
        v = tl.load(x + row * n + i, i < n, other=float("-inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * n + i, e / tl.sum(e, 0), i < n)

    x = torch.randn(ROWS, COLUMNS)
    y = torch.empty_like(x)

    def call() -> None:
        kernel[(ROWS,)](y, x, COLUMNS, BLOCK=COLUMNS)

    call()
    assert torch.allclose(y, torch.softmax(x, -1), atol=1e-6)
    return call


def numba_softmax(rows: int) -> Callable[[], Any]:
    """The package's own: one block of 64 threads a row, online."""
    import numpy as np

    from assay.ops.softmax.softmax_numba import THREADS, kernel_for

    kernel = kernel_for("float32")
    x = np.random.default_rng(0).standard_normal((rows, COLUMNS), dtype=np.float32)
    y = np.empty_like(x)

    def call() -> None:
        kernel[rows, THREADS](y, x)

    call()
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(y, e / e.sum(1, keepdims=True), atol=1e-6)
    return call


def matmul_ptx() -> str:
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(MATMUL.encode(), b"matmul.cu", 0, [], [])
    options = [b"--gpu-architecture=compute_80", b"-lineinfo"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b" \0").decode()


def stepped(what: str, switch: str) -> dict[str, float]:
    """The same call in a process of its own, in the interpreter or the simulator."""
    command = [sys.executable, "-W", "ignore", __file__, "--stepped", what]
    env = {**os.environ, switch: "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def scaled(found: dict[str, float], by: float) -> dict[str, float]:
    return {name: seconds * by for name, seconds in found.items()}


def figures() -> Iterator[dict[str, Any]]:
    from assay import simt
    from assay.simt.adapters import numba as numba_adapter
    from assay.simt.adapters import triton as triton_adapter

    watch = simt.Watch()
    with triton_adapter.shim(watch.run):
        ours = timed(triton_softmax())
    assert not watch.faults
    theirs = stepped("triton", "TRITON_INTERPRET")
    yield {"figure": "triton softmax 256x1024, all checks", "seconds": ours}
    yield {
        "figure": "the same in Triton's interpreter",
        "seconds": theirs,
        "ratio": theirs["median"] / ours["median"],
    }
    with numba_adapter.shim(watch.run):
        ours = timed(numba_softmax(ROWS))
    assert not watch.faults
    theirs = scaled(stepped("numba", "NUMBA_ENABLE_CUDASIM"), ROWS / SIMULATED_ROWS)
    yield {"figure": "numba softmax 256x1024, all checks", "seconds": ours}
    yield {
        "figure": f"the same in Numba's simulator, scaled up from {SIMULATED_ROWS} rows",
        "seconds": theirs,
        "ratio": theirs["median"] / ours["median"],
    }
    yield from matmul(simt)


def matmul(simt: Any) -> Iterator[dict[str, Any]]:
    import torch

    ptx = matmul_ptx()
    begun = time.perf_counter()
    kernel = simt.load(ptx, "matmul")
    built = time.perf_counter() - begun
    a, b, c = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE), torch.empty(SIZE, SIZE)
    grid = (SIZE // 16, SIZE // 16)
    bare = replace(kernel, checks=False)

    def launch(which: Any, threads: int) -> Callable[[], Any]:
        def call() -> None:
            done = which.launch(grid, (16, 16), [c, a, b, SIZE], threads=threads)
            assert not done.faults

        return call

    watched = timed(launch(kernel, 1))
    alone = timed(launch(bare, 1))
    assert torch.allclose(c, a @ b, atol=1e-3)
    yield {"figure": "tiled matmul 256^3, all checks, one core", "seconds": watched}
    yield {
        "figure": "the same without checks and counts",
        "seconds": alone,
        "ratio": watched["median"] / alone["median"],
    }
    every = timed(launch(kernel, os.cpu_count() or 1))
    yield {"figure": f"with all checks on {os.cpu_count()} cores", "seconds": every}
    yield {
        "figure": "building the matmul, runtime library included where it is not kept yet",
        "seconds": {"median": built, "least": built, "most": built},
    }
    simt.module._loaded.clear()
    begun = time.perf_counter()
    again = simt.load(ptx, "matmul")
    assert again.build.cached
    seconds = time.perf_counter() - begun
    yield {
        "figure": "loading it again from the cache",
        "seconds": {"median": seconds, "least": seconds, "most": seconds},
    }


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--stepped"]:
        if arguments[1] == "triton":
            print(json.dumps(timed(triton_softmax(), 5)))
        else:
            print(json.dumps(timed(numba_softmax(SIMULATED_ROWS), 1)))
        return
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("ASSAY_CACHE", cache)
        lines = []
        for figure in figures():
            line = json.dumps(figure)
            lines.append(line)
            print(line, flush=True)
    if arguments:
        Path(arguments[0]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
