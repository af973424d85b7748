"""Entries of half.cu, double.cu, tensor_core.cu and wmma.cu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .entry import (
    BFLOAT,
    DOUBLE,
    EXACT,
    FLOAT,
    HALF,
    Arguments,
    blank,
    cuda,
    integers,
    normal,
    uniform,
)

HALVES, DOUBLES, MMA, WMMA = "half.cu", "double.cu", "tensor_core.cu", "wmma.cu"
F16, BF16, F64, I8 = torch.float16, torch.bfloat16, torch.float64, torch.int8
N = 301


def compares(y: Any, a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    p, q = a.double(), b.double()
    rows = [p.maximum(q), p.minimum(q), torch.where(p > q, p, q - p), (p * q + p).clamp(min=0)]
    rows += [p.abs(), (a * 4).double().round(), (p + q).clamp(0, 1)]
    return torch.cat([*rows, torch.where(p < 0, -q, q.abs().sqrt())])


def bf16_rows(y: Any, a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    p, q = a.double(), b.double()
    return torch.cat([p * q + p, p.maximum(q), p - q, p * q, q.abs()])


def toward(x: torch.Tensor, to: torch.dtype, way: str) -> torch.Tensor:
    """x rounded to a 16-bit type: z towards zero, d down, u up."""
    near = x.to(to)
    bits = near.view(torch.int16).to(torch.int32) & 0xFFFF
    step = torch.where(near.float() < 0, -1, 1)
    beyond = {"z": near.float().abs() > x.abs(), "d": near.float() > x, "u": near.float() < x}[way]
    # a step towards zero takes one from the bits, one away from zero adds one
    grow = {"z": torch.full_like(step, -1), "d": -step, "u": step}[way]
    moved = torch.where(beyond, bits + grow, bits)
    return ((moved + 32768) % 65536 - 32768).to(torch.int16).view(to)


def converted(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    half = x.half()
    rows = [half, *(toward(x, F16, way) for way in "zdu"), x.bfloat16(), toward(x, BF16, "z")]
    rows += [half.float().round(), (x * 10).trunc().half(), half.float().floor()]
    return torch.cat([r.double() for r in rows])


def eights(y: Any, raw: Any, x: torch.Tensor, n: int) -> list[torch.Tensor]:
    a, b = x.clamp(-448, 448).to(torch.float8_e4m3fn), x.to(torch.float8_e5m2)
    values = torch.cat([a.double(), b.double()])
    return [values, torch.cat([a.view(torch.uint8), b.view(torch.uint8)])]


def double_library(y: Any, v: torch.Tensor, n: int) -> torch.Tensor:
    rows = [(-v).exp(), v.log(), v.sqrt(), 1 / v, v**1.7, (v * 50).sin(), v.erf(), v.rsqrt()]
    return torch.cat(rows)


def double_conversions(y: Any, v: torch.Tensor, n: int) -> torch.Tensor:
    rows = [v.float().double(), (v * 1e6).trunc(), (v.abs() * 1000).trunc()]
    below = torch.where(v == 0, v, v) * 0  # v + 1e-20 rounded down is v again
    rows += [v.round() + v.floor() * 4096, -v, v * 2, below, rest_of_square(v)]
    return torch.cat(rows)


def rest_of_square(v: torch.Tensor) -> torch.Tensor:
    """fma(v, v, -(v * v)), exactly: what rounding the square left out."""
    from fractions import Fraction

    exact = [Fraction(x) ** 2 - Fraction(x * x) for x in v.tolist()]
    return torch.tensor([float(rest) for rest in exact], dtype=F64)


def matrices(
    seed: int, m: int, n: int, k: int, dtype: torch.dtype, out: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return blank(m, n, dtype=out), normal(seed, m, k).to(dtype), normal(seed + 1, k, n).to(dtype)


def tiles_of(dtype: torch.dtype) -> Callable[[int], Arguments]:
    return lambda s: [*matrices(s, 32, 64, 48, dtype), 64, 48]


def product(c: Any, a: torch.Tensor, b: torch.Tensor, *_: Any) -> torch.Tensor:
    return a.double() @ b.double()


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounded to 11 bits, ties away from zero, as cvt.rna does."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def bytes_product(c: Any, a: torch.Tensor, b: torch.Tensor, *_: Any) -> torch.Tensor:
    """b: (n, k)."""
    return (a.long() @ b.long().T).to(torch.int32)


def signed_bytes(seed: int, rows: int, columns: int) -> torch.Tensor:
    return integers(seed, -128, 128, rows, columns, dtype=I8)


def bf16_product(c: Any, a: torch.Tensor, b: torch.Tensor, scale: float, *_: Any) -> torch.Tensor:
    return scale * (a.double() @ b.double().T)


HALF_ENTRIES = (
    cuda(
        HALVES,
        "half_axpy",
        lambda s: [
            normal(s, N, dtype=F16),
            normal(s + 1, N, dtype=F16),
            bytes(torch.tensor([1.5], dtype=F16).view(torch.uint8).tolist()),
            N,
        ],
        lambda y, x, a, n: (1.5 * x.double() + y.double()).half(),
        2,
        96,
        tags="half",
    ),
    cuda(
        HALVES,
        "half_silu",
        lambda s: [blank(302, dtype=F16), normal(s, 302, dtype=F16) * 3, 151],
        lambda y, x, n: torch.nn.functional.silu(x.double()),
        2,
        96,
        tolerance=HALF,
        tags="half",
    ),
    cuda(
        HALVES,
        "half_compares",
        lambda s: [
            blank(8 * N, dtype=F16),
            normal(s, N, dtype=F16),
            normal(s + 1, N, dtype=F16),
            N,
        ],
        compares,
        3,
        128,
        tolerance=HALF,
        tags="half",
    ),
    cuda(
        HALVES,
        "bf16_squares",
        lambda s: [blank(5), normal(s, 5, 312, dtype=BF16), 312],
        lambda y, x, n: x.double().square().sum(1),
        5,
        32,
        tolerance=FLOAT,
        tags="half",
    ),
    cuda(
        HALVES,
        "bf16_arithmetic",
        lambda s: [
            blank(5 * 302, dtype=BF16),
            normal(s, 302, dtype=BF16),
            normal(s + 1, 302, dtype=BF16),
            151,
        ],
        bf16_rows,
        2,
        96,
        tolerance=BFLOAT,
        tags="half",
    ),
    cuda(
        HALVES,
        "conversions",
        lambda s: [blank(9 * N), normal(s, N) * 20, N],
        converted,
        3,
        128,
        tags="half",
    ),
    cuda(
        HALVES,
        "float8",
        lambda s: [
            blank(2 * N),
            torch.zeros(2 * N, dtype=torch.uint8),
            normal(s, N) * 10 ** uniform(s + 1, -3, 2, N),
            N,
        ],
        eights,
        3,
        128,
        outputs=(0, 1),
        tags="half",
    ),
)
DOUBLE_ENTRIES = (
    cuda(
        DOUBLES,
        "double_library",
        lambda s: [blank(8 * N, dtype=F64), normal(s, N, dtype=F64).abs() + 0.01, N],
        double_library,
        3,
        128,
        tolerance=DOUBLE,
    ),
    cuda(
        DOUBLES,
        "double_conversions",
        lambda s: [blank(8 * N, dtype=F64), normal(s, N, dtype=F64) * 100 + 1e-5, N],
        double_conversions,
        3,
        128,
        tolerance=EXACT,
    ),
    cuda(
        DOUBLES,
        "double_sum",
        lambda s: [blank(1, dtype=F64), normal(s, 1009, dtype=F64), 1009],
        lambda y, x, n: x.sum(0, keepdim=True),
        1,
        128,
        tolerance=DOUBLE,
        mutate=True,
    ),
    cuda(
        DOUBLES,
        "double_matmul",
        lambda s: [*matrices(s, 13, 19, 21, F64, F64), 13, 19, 21],
        product,
        (3, 2),
        (8, 8),
        tolerance=DOUBLE,
        mutate=True,
    ),
)
MATRIX_ENTRIES = (
    cuda(
        WMMA,
        "wmma_half",
        lambda s: [*matrices(s, 32, 48, 64, F16), 48, 64],
        product,
        (3, 2),
        32,
        tolerance=FLOAT,
        tags="mma",
    ),
    cuda(
        WMMA,
        "wmma_bf16",
        lambda s: [
            blank(64, 24),
            normal(s, 64, 48, dtype=BF16),
            normal(s + 1, 24, 48, dtype=BF16),
            0.5,
            24,
            48,
        ],
        bf16_product,
        (3, 2),
        32,
        tolerance=FLOAT,
        tags="mma",
    ),
    cuda(
        WMMA,
        "wmma_tf32",
        lambda s: [*matrices(s, 32, 32, 40, torch.float32), 32, 40],
        lambda c, a, b, n, k: tf32(a).double() @ tf32(b).double(),
        (2, 2),
        32,
        tolerance=FLOAT,
        tags="mma",
    ),
    cuda(
        WMMA,
        "wmma_int8",
        lambda s: [
            blank(32, 16, dtype=torch.int32),
            signed_bytes(s, 16, 64),
            signed_bytes(s + 1, 32, 64),
            64,
        ],
        lambda c, a, b, k: bytes_product(c, a, b).T,
        1,
        64,
        tags="mma",
        mutate=True,
    ),
    *(
        cuda(
            MMA,
            f"mma_tiles<{name}>",
            tiles_of(dtype),
            product,
            (2, 2),
            64,
            tolerance=FLOAT,
            tags="mma",
            mutate=dtype is F16,
        )
        for name, dtype in (("__half", F16), ("__nv_bfloat16", BF16))
    ),
    cuda(
        MMA,
        "mma_int8",
        lambda s: [
            blank(16, 8, dtype=torch.int32),
            signed_bytes(s, 16, 32),
            signed_bytes(s + 1, 8, 32),
        ],
        bytes_product,
        1,
        32,
        tags="mma",
    ),
    cuda(
        MMA,
        "mma_double",
        lambda s: [*matrices(s, 8, 8, 20, F64, F64), 20],
        product,
        1,
        32,
        tolerance=DOUBLE,
        tags="mma",
    ),
)
ENTRIES = (*HALF_ENTRIES, *DOUBLE_ENTRIES, *MATRIX_ENTRIES)
