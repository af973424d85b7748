"""Entries of elementwise.cu."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .entry import (
    EXACT,
    FAST,
    FUNCTION,
    Arguments,
    blank,
    blocks,
    cuda,
    integers,
    normal,
    permutation,
    uniform,
)

FILE = "elementwise.cu"
N = 1009
INT64 = torch.int64


def vectors(seed: int, count: int = 1, n: int = N, rows: int = 1) -> Arguments:
    return [blank(rows * n), *(normal(seed + k, n) for k in range(count)), n]


def apply(x: torch.Tensor, op: torch.Tensor) -> torch.Tensor:
    """What interpret does, all ways at once."""
    v = x.double()
    ways = [-v, v * v, v.abs(), v.abs().sqrt(), (v + 1) * 3, v * 3, v.floor(), v.clamp(min=0)]
    ways += [1 / (1 + v * v), torch.full_like(v, 2).copysign(v), torch.full_like(v, 42)]
    return torch.stack(ways).gather(0, op.long()[None])[0]


def library(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    v = x.double()
    p = (x.abs() + 0.1).double()
    cbrt = (v.abs() ** (1 / 3)).copysign(v)
    rows = [v.exp(), p.log(), p**v, torch.lgamma(p), p.log1p(), v.expm1(), cbrt, torch.erfc(v)]
    rows += [torch.atan2(v, torch.full_like(v, 1.5)), v.tan(), v.asinh(), torch.special.ndtr(v)]
    return torch.cat(rows)


def intrinsics(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    v = x.double()
    rows = [v.sin(), v.cos(), v.exp(), (v + 4).log2(), (v + 4) ** 1.5, v / (v + 4)]
    return torch.cat([*rows, (v + 4) ** -0.5, v.clamp(0, 1)])


def roundings(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    v = x.double()
    away = v.abs().add(0.5).floor().copysign(v)
    thousand = (x * 1000).trunc().double()
    power = (x.view(torch.int32) & 0x7F800000).view(torch.float32).double()
    rows = [v.round(), v.trunc(), v.ceil(), away, thousand, torch.fmod(v, 0.75), v.abs().trunc()]
    return torch.cat([*rows, power])


def low32(x: torch.Tensor) -> list[int]:
    return [v - (1 << 32) if v >= 1 << 31 else v for v in (int(v) & 0xFFFFFFFF for v in x)]


def quotient(a: int, b: int) -> int:
    """Towards zero, as C divides."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def divisions(y: Any, a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    rows: list[list[int]] = [[] for _ in range(9)]
    for p, q, x, d in zip(low32(a), low32(b), a.tolist(), b.tolist()):
        q, d = q | 1, d | 1
        u, v = p & 0xFFFFFFFF, q & 0xFFFFFFFF
        by, wide = quotient(p, q), quotient(x, d)
        values = [by, p - by * q, u // v, u % v, wide, x - wide * d, quotient(p, 7), u % 1000]
        for row, value in zip(rows, [*values, quotient(x, 97)]):
            row.append(value)
    return torch.tensor(rows).flatten()


def products(y: Any, a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    rows: list[list[int]] = [[] for _ in range(6)]
    for p, q, x, d in zip(low32(a), low32(b), a.tolist(), b.tolist()):
        u, v = p & 0xFFFFFFFF, q & 0xFFFFFFFF
        high = (x % 2**64) * (d % 2**64) >> 64
        low24 = [(z & 0xFFFFFF) - ((z & 0x800000) << 1) for z in (p, q)]
        product = (low24[0] * low24[1] + 2**31) % 2**32 - 2**31
        sad = abs((p >> 2) - (q >> 2)) + 7
        values = [p * q >> 32, u * v >> 32, x * d >> 64, signed(high), product, sad]
        for row, value in zip(rows, values):
            row.append(value)
    return torch.tensor(rows).flatten()


def signed(value: int, bits: int = 64) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def bit_tricks(y: Any, a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    rows: list[list[int]] = [[] for _ in range(12)]
    for i, (s, t) in enumerate(zip(a.tolist(), b.tolist())):
        p, q = s & 0xFFFFFFFF, t & 0xFFFFFFFF
        picked = [(q << 32 | p) >> 8 * k & 0xFF for k in (0, 2, 4, 6)]
        low = (p | 0xFFFFFFFF00000000 if s < 0 else p) & 0x00FFFFFF
        values = [
            p.bit_count(),
            32 - p.bit_length(),
            (p & -p).bit_length(),
            int(f"{p:032b}"[::-1], 2),
            sum(byte << 8 * k for k, byte in enumerate(picked)),
            (q << 32 | p) << (i & 31) >> 32,
            (q << 32 | p) >> (i & 31),
            (p << 32 | q).bit_count(),
            64 - low.bit_length(),
            (p ^ q) & ~(p & 0xFF) | (q >> 3),
            (p << (q & 7) & 0xFFFFFFFF) >> 5,
            s >> (q & 15),
        ]
        for row, value in zip(rows, values):
            row.append(signed(value, 32))
    return torch.tensor(rows, dtype=torch.int32).flatten()


def dot_bytes(y: Any, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, n: int) -> torch.Tensor:
    parts = []
    for kind in (torch.int8, torch.uint8):
        x, z = (t.view(kind).view(n, 4).long() for t in (a, b))
        parts.append(((x * z).sum(1) + c).to(torch.int32))
    return torch.cat(parts)


def stencil(y: Any, x: torch.Tensor, nx: int, ny: int, nz: int) -> torch.Tensor:
    v = x.double().view(nz, ny, nx)
    out, core = v.clone(), v[1:-1, 1:-1, 1:-1]
    around = v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1]
    around += v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:]
    out[1:-1, 1:-1, 1:-1] = core + 0.1 * (around - 6 * core)
    return out.flatten()


def directed(y: Any, a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    """Each result rounded from the exact one: float64 holds sums of these, and products."""
    p, q = a.double(), b.double()
    exact = p * q + p  # a product of 24 bits each and a term of the same size: within 53 bits
    rows = [exact.float(), below(exact), above(exact)]
    rows += [torch.where(exact > 0, below(exact), above(exact))]
    rows += [below(p + q), above(p + q), (p / q).float(), p.abs().sqrt().float()]
    return torch.cat(rows)


def below(x: torch.Tensor) -> torch.Tensor:
    f = x.float()
    return torch.where(f.double() > x, f.nextafter(torch.tensor(-math.inf)), f)


def above(x: torch.Tensor) -> torch.Tensor:
    f = x.float()
    return torch.where(f.double() < x, f.nextafter(torch.tensor(math.inf)), f)


def coarse(seed: int, n: int) -> torch.Tensor:
    """Values with 12 bits, so that products and sums of them are exact in float64."""
    return (normal(seed, n) * 1024).round().clamp(min=1).div(1024)


def wide(seed: int, n: int) -> torch.Tensor:
    """64-bit numbers of all sizes."""
    return integers(seed, -(2**62), 2**62, n, dtype=INT64) >> integers(seed + 1, 0, 50, n)


def spread_out(stride: int) -> Callable[[int], Arguments]:
    return lambda s: [blank(N), normal(s, N * stride), N]


def every(stride: int) -> Callable[..., torch.Tensor]:
    return lambda y, x, n: x[::stride]


def wide_pairs(rows: int) -> Callable[[int], Arguments]:
    return lambda s: [blank(rows * 301, dtype=INT64), wide(s, 301), wide(s + 9, 301), 301]


def gelu_tanh(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.nn.functional.gelu(x.double(), approximate="tanh")


GRID = blocks(N, 128)
ENTRIES = (
    cuda(FILE, "square", vectors, lambda y, x, n: x.square(), GRID, 128, tags="counts"),
    cuda(FILE, "square", vectors, lambda y, x, n: x.square(), 11, 100, name="square odd block"),
    cuda(
        FILE,
        "saxpy_grid_stride",
        lambda s: [normal(s, N), normal(s + 1, N), 1.5, N],
        lambda y, x, a, n: a * x.double() + y,
        3,
        96,
        tolerance=FUNCTION,
    ),
    *(
        cuda(
            FILE,
            f"copy_strided<{stride}>",
            spread_out(stride),
            every(stride),
            GRID,
            128,
            tags="counts",
        )
        for stride in (1, 2, 8, 33)
    ),
    cuda(
        FILE,
        "copy_offset",
        lambda s: [blank(N), normal(s, N + 5), 5, N],
        lambda y, x, offset, n: x[5:],
        GRID,
        128,
        tags="counts",
    ),
    cuda(FILE, "copy_float4", vectors, lambda y, x, n: x, blocks(N, 512), 128, tags="counts"),
    cuda(
        FILE,
        "increment_int2",
        lambda s: [blank(502, dtype=torch.int32), integers(s, -9, 9, 502), 251],
        lambda y, x, n: x + 1,
        2,
        128,
    ),
    cuda(
        FILE,
        "length_aos",
        lambda s: [blank(N), normal(s, N, 3), N],
        lambda y, p, n: p.double().norm(dim=1),
        GRID,
        128,
        tags="counts",
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "length_soa",
        lambda s: vectors(s, 3),
        lambda y, a, b, c, n: torch.stack([a, b, c]).double().norm(dim=0),
        GRID,
        128,
        tags="counts",
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "permute",
        lambda s: [blank(N), normal(s, N), permutation(s, N), permutation(s + 1, N), N],
        lambda y, x, f, t, n: torch.empty(n).index_copy(0, t.long(), x[f.long()]),
        GRID,
        128,
    ),
    cuda(FILE, "gelu_tanh", vectors, gelu_tanh, GRID, 128, tolerance=FUNCTION),
    cuda(
        FILE,
        "gelu_tanh",
        vectors,
        gelu_tanh,
        GRID,
        128,
        name="gelu_tanh fast math",
        flags=("-use_fast_math",),
        tolerance=(2e-3, 2e-3, "tanh.approx has a relative error of 2^-11"),
    ),
    cuda(
        FILE,
        "gelu_erf",
        vectors,
        lambda y, x, n: torch.nn.functional.gelu(x.double()),
        GRID,
        128,
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "unpack_rgba",
        lambda s: [blank(4 * 301), integers(s, 0, 256, 4 * 301, dtype=torch.uint8), 301],
        lambda y, x, n: x.double() / 255,
        3,
        128,
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "interpret",
        lambda s: [blank(N), normal(s, N), integers(s, 0, 11, N), N],
        lambda y, x, op, n: apply(x, op),
        GRID,
        128,
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "sine_cosine",
        lambda s: [blank(N), blank(N), normal(s, N) * 10 ** uniform(s, -2, 8, N), N],
        lambda a, b, x, n: [x.double().sin(), x.double().cos()],
        GRID,
        128,
        outputs=(0, 1),
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "intrinsics",
        lambda s: [blank(8 * N), uniform(s, -3, 3, N), N],
        intrinsics,
        GRID,
        128,
        tolerance=FAST,
    ),
    cuda(
        FILE,
        "library",
        lambda s: [blank(12 * N), uniform(s, -3, 3, N), N],
        library,
        GRID,
        128,
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "roundings",
        lambda s: [blank(8 * N), uniform(s, -40, 40, N), N],
        roundings,
        GRID,
        128,
        tolerance=FUNCTION,
    ),
    *(
        cuda(
            FILE,
            kernel,
            wide_pairs(rows),
            reference,
            3,
            128,
        )
        for kernel, rows, reference in (("divisions", 9, divisions), ("products", 6, products))
    ),
    cuda(
        FILE,
        "bit_tricks",
        lambda s: [
            blank(12 * 301, dtype=torch.int32),
            integers(s, -(2**31), 2**31, 301) >> integers(s, 0, 30, 301),
            integers(s + 1, -(2**31), 2**31, 301),
            301,
        ],
        bit_tricks,
        3,
        128,
    ),
    cuda(
        FILE,
        "dot_bytes",
        lambda s: [
            blank(2 * 301, dtype=torch.int32),
            *(integers(s + k, -(2**31), 2**31, 301) for k in range(2)),
            integers(s, 0, 999, 301),
            301,
        ],
        dot_bytes,
        3,
        128,
    ),
    cuda(
        FILE,
        "stencil_3d",
        lambda s: [blank(13 * 11 * 7), normal(s, 13 * 11 * 7), 13, 11, 7],
        stencil,
        (2, 3, 4),
        (8, 4, 2),
        tolerance=FUNCTION,
    ),
    cuda(
        FILE,
        "tiny_blocks",
        lambda s: [blank(3001, dtype=torch.int32), integers(s, -9, 9, 3001, 3), 3],
        lambda y, x, each: x.sum(1, dtype=torch.int32),
        3001,
        7,
    ),
    cuda(
        FILE,
        "denormal_scale",
        lambda s: [blank(N), normal(s, N), 1e-40, N],
        lambda y, x, scale, n: (x.double() * float(torch.tensor(1e-40))).float(),
        GRID,
        128,
        tolerance=EXACT,
    ),
    cuda(
        FILE,
        "denormal_scale",
        lambda s: [blank(N), normal(s, N) * 1e-20, 1e-20, N],
        lambda y, x, scale, n: flushed((x.double() * float(torch.tensor(1e-20))).float()),
        GRID,
        128,
        name="denormal_scale flushed",
        flags=("--ftz=true",),
        tolerance=EXACT,
    ),
    cuda(
        FILE,
        "directed_rounding",
        lambda s: [blank(8 * N), coarse(s, N), coarse(s + 1, N), N],
        directed,
        GRID,
        128,
        tolerance=EXACT,
    ),
)


def flushed(x: torch.Tensor) -> torch.Tensor:
    """Denormals as zeros of their sign."""
    return torch.where(x.abs() < 2.0**-126, torch.zeros_like(x).copysign(x), x)
