"""The kernels whose counts are compared: launches with their PTX and arguments."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import build
from .build import ROOT

sys.path.insert(0, str(ROOT / "tests" / "simt"))

OWN = Path(__file__).with_name("kernels.cu")
SEED = 1
CORPUS = {
    "elementwise.cu": (
        "square",
        "copy_strided<2>",
        "copy_strided<8>",
        "copy_strided<33>",
        "copy_offset",
        "copy_float4",
        "length_aos",
        "length_soa",
    ),
    "transpose.cu": (
        "transpose_naive",
        "transpose_tiled<0>",
        "transpose_tiled<1>",
        "transpose_swizzled",
        "transpose_registers",
    ),
    "softmax_norm.cu": ("softmax<float>", "layernorm"),
    "matmul.cu": ("matmul_naive", "matmul_tiled", "matmul_registers"),
    "histogram_atomics.cu": ("histogram_global", "histogram_shared"),
    "memory_spaces.cu": ("bank_conflicts<2>", "bank_conflicts<32>", "shared_float4"),
    "async_copy.cu": ("copy_once", "double_buffer"),
    "reduce.cu": ("sum_shuffle", "dot_float4"),
}
"""From tests/simt/kernels, with the launches that are there."""


@dataclass(frozen=True)
class Case:
    name: str
    ptx: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: list[Any]
    """Arrays, numbers, bytes; parameters beyond are null."""
    shared: int = 0


def three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def as_arrays(args: list[Any]) -> list[Any]:
    return [arg.numpy() if hasattr(arg, "numpy") else arg for arg in args]


def corpus() -> list[Case]:
    from kernels import counting, elementwise, lanes, moving, numeric, products, waiting

    modules = (counting, elementwise, lanes, moving, numeric, products, waiting)
    known: dict[tuple[str, str], Any] = {}
    for module in modules:
        for entry in module.ENTRIES:
            if not entry.flags:
                known.setdefault((entry.source, entry.kernel), entry)
    made = []
    for source, kernels in CORPUS.items():
        found = [known[source, kernel] for kernel in kernels]
        texts = build.cuda(ROOT / "tests/simt/kernels" / source, kernels)
        for entry in found:
            ptx, name = texts[entry.kernel]
            arguments = as_arrays(entry.make(SEED))
            made.append(
                Case(
                    entry.kernel,
                    ptx,
                    name,
                    three(entry.grid),
                    three(entry.block),
                    arguments,
                    entry.shared,
                )
            )
    return made


def own() -> list[Case]:
    rng = np.random.default_rng(SEED)
    n = 1003
    whole = rng.integers(-(2**62), 2**62, n)
    small = rng.integers(0, 100, n).astype(np.int32)
    calls: dict[str, list[Any]] = {
        "copy_64": [np.zeros(n, np.int64), whole, n],
        "copy_bytes": [np.zeros(n, np.uint8), rng.integers(0, 256, n).astype(np.uint8), n],
        "draw_tickets": [np.zeros(n, np.int32), np.zeros(1, np.int32), np.full(n, 3, np.int32), n],
        "add_to_bins": [np.zeros(7, np.int32), small, 7, n],
    }
    texts = build.cuda(OWN, tuple(calls))
    return [Case(name, *texts[name], (8, 1, 1), (128, 1, 1), args) for name, args in calls.items()]


def triton() -> list[Case]:
    from kernels import triton_kernels as kernels

    rng = np.random.default_rng(SEED)

    def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    made = []

    def add(
        name: str,
        grid: tuple[int, ...],
        types: list[str],
        args: list[Any],
        constants: dict[str, Any],
        kernel: str = "",
    ) -> None:
        function = getattr(kernels, kernel or name)
        names = [n for n in function.arg_names if n not in constants]
        built = build.triton(function, dict(zip(names, types, strict=True)), constants)
        block = (built["threads"], 1, 1)
        made.append(
            Case(
                f"triton {name}",
                built["ptx"],
                built["entry"],
                three(grid),
                block,
                args,
                built["shared"],
            )
        )

    pointer, half = "*fp32!", "*fp16!"
    n = 1024 * 3
    add("square", (3,), [pointer, pointer, "i32!"], [normal(n), normal(n), n], {"BLOCK": 1024})
    n = 1009
    add(
        "square tail",
        (2,),
        [pointer, pointer, "i32"],
        [normal(n), normal(n), n],
        {"BLOCK": 512},
        kernel="square",
    )
    add(
        "softmax",
        (5,),
        [pointer, pointer, "i32"],
        [normal(5, 301), normal(5, 301), 301],
        {"BLOCK": 512},
    )
    add(
        "histogram",
        (4,),
        ["*i32!", "*i32!", "i32"],
        [np.zeros(64, np.int32), rng.integers(0, 64, 1000).astype(np.int32), 1000],
        {"BINS": 64, "BLOCK": 256},
    )
    m = 128
    add(
        "matmul fp16",
        (2, 2),
        [pointer, half, half, "i32!", "i32!", "i32!"],
        [normal(m, m), normal(m, m, dtype=np.float16), normal(m, m, dtype=np.float16), m, m, m],
        {"PRECISION": "ieee", "BM": 64, "BN": 64, "BK": 32},
        kernel="matmul",
    )
    return made


def every() -> list[Case]:
    return [*corpus(), *own(), *triton()]
