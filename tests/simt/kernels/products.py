"""Entries of matmul.cu and scan_sort.cu."""

from __future__ import annotations

import struct
from typing import Any

import torch

from .entry import FLOAT, Arguments, blank, blocks, cuda, integers, normal, uniform

MATMUL, SCAN = "matmul.cu", "scan_sort.cu"
INT32 = torch.int32
M, N, K = 37, 41, 29


def factors(seed: int) -> Arguments:
    return [blank(M, N), normal(seed, M, K), normal(seed + 1, K, N), M, N, K]


def product(c: Any, a: torch.Tensor, b: torch.Tensor, *_: Any) -> torch.Tensor:
    return a.double() @ b.double()


def view(tensor: torch.Tensor, rows: int, columns: int) -> list[Any]:
    """Matrix of matmul.cu."""
    return [tensor, struct.pack("<iii4x", rows, columns, tensor.shape[-1])]


def views(seed: int) -> Arguments:
    c, a, b = normal(seed, 3, 11, 16), normal(seed + 1, 11, 20), normal(seed + 2, 17, 15)
    return [view(c, 11, 13), view(a, 11, 17), view(b, 17, 13), 0.5, 2.0, 11 * 16]


def gemm_views(c: Any, a: Any, b: Any, alpha: float, beta: float, step: int) -> torch.Tensor:
    out = c[0].double()
    out[:, :, :13] = alpha * (a[0][:, :17].double() @ b[0][:, :13].double()) + beta * out[:, :, :13]
    return out


def int8_factors(seed: int) -> Arguments:
    a, b = (
        integers(seed + k, -128, 128, rows, 36, dtype=torch.int8) for k, rows in ((0, M), (1, N))
    )
    return [blank(M, N, dtype=INT32), a, b, M, N, 9]


FILTER = normal(3, 25)


def convolved(y: Any, x: torch.Tensor, height: int, width: int) -> torch.Tensor:
    weight = FILTER.double().view(1, 1, 5, 5)
    return torch.nn.functional.conv2d(x.double()[None, None], weight, padding=2)[0, 0]


def lower(c: torch.Tensor, a: torch.Tensor, n: int, k: int) -> torch.Tensor:
    full = a.double() @ a.double().T
    keep = torch.arange(n)[None] <= torch.arange(n)[:, None]
    return torch.where(keep, full, c.double())


def scans(of: int, exclusive: bool = False) -> Any:
    def reference(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
        parts = [p.cumsum(0) - (p if exclusive else 0) for p in x.long().split(of)]
        return torch.cat(parts).to(INT32)

    return reference


def numbers(n: int) -> Any:
    return lambda s: [blank(n, dtype=INT32), integers(s, -99, 99, n), n]


def compacted(y: torch.Tensor, count: Any, x: torch.Tensor, n: int) -> list[torch.Tensor]:
    kept = x[x > 0]
    out = y.clone()
    out[: len(kept)] = kept
    return [out, torch.tensor([len(kept)], dtype=INT32)]


def block_results(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    parts = x.double().split(96)
    return torch.stack([torch.stack([p.sum(), p.max()]) for p in parts]).flatten()


def sorted_pairs(key: torch.Tensor, value: torch.Tensor) -> list[torch.Tensor]:
    kept, order = key.sort(stable=True)
    return [kept, value[order]]


def runs(heads: Any, count: Any, x: torch.Tensor) -> list[torch.Tensor]:
    head = torch.ones(128, dtype=INT32)
    head[1:] = (x[1:] != x[:-1]).to(INT32)
    return [head, torch.bincount(x.long(), minlength=16).to(INT32)]


def warp_results(a: Any, b: Any, x: torch.Tensor) -> list[torch.Tensor]:
    groups = x.view(4, 16)
    return [groups.sum(1).to(INT32), groups.cumsum(1).flatten().to(INT32)]


MATMULS = (
    cuda(MATMUL, "matmul_naive", factors, product, (3, 5), (16, 8), tolerance=FLOAT, tags="counts"),
    cuda(
        MATMUL,
        "matmul_tiled",
        factors,
        product,
        (3, 3),
        (16, 16),
        tolerance=FLOAT,
        tags="counts",
        mutate=True,
    ),
    cuda(MATMUL, "matmul_registers", factors, product, (2, 2), 64, tolerance=FLOAT, mutate=True),
    cuda(
        MATMUL,
        "matvec",
        lambda s: [blank(M), normal(s, M, 101), normal(s + 1, 101), M, 101],
        lambda y, a, x, m, k: a.double() @ x.double(),
        blocks(M, 3),
        96,
        tolerance=FLOAT,
    ),
    cuda(
        MATMUL,
        "gemm_views",
        views,
        gemm_views,
        (2, 2, 3),
        (8, 8),
        tolerance=FLOAT,
        tags="structs",
    ),
    cuda(
        MATMUL,
        "matmul_int8",
        int8_factors,
        lambda c, a, b, *_: (a.long() @ b.long().T).to(INT32),
        (6, 10),
        (8, 4),
    ),
    cuda(
        MATMUL,
        "convolve_5x5",
        lambda s: [blank(19, 37), normal(s, 19, 37), 19, 37],
        convolved,
        (3, 3),
        (16, 8),
        constants={"filter": FILTER},
        tolerance=FLOAT,
        mutate=True,
        tags="constant",
    ),
    cuda(
        MATMUL,
        "rank_k",
        lambda s: [normal(s + 1, 21, 21), normal(s, 21, 29), 21, 29],
        lower,
        (3, 3),
        (8, 8),
        tolerance=FLOAT,
        mutate=True,
    ),
)
SCANS = (
    cuda(SCAN, "scan_hillis_steele", numbers(301), scans(128), 3, 128, mutate=True),
    cuda(SCAN, "scan_blelloch", numbers(601), scans(256, True), 3, 128, mutate=True),
    cuda(SCAN, "scan_shuffle", numbers(601), scans(256), 3, 256, mutate=True),
    cuda(
        SCAN,
        "sort_bitonic",
        lambda s: [integers(s, -999, 999, 2, 256)],
        lambda x: x.sort(1)[0],
        2,
        256,
        mutate=True,
    ),
    cuda(
        SCAN,
        "compact",
        lambda s: [blank(601, dtype=INT32), blank(1, dtype=INT32), *numbers(601)(s)[1:]],
        compacted,
        1,
        128,
        outputs=(0, 1),
        mutate=True,
    ),
    cuda(
        SCAN,
        "cub_scan",
        numbers(251),
        lambda y, x, n: x.cumsum(0).to(INT32),
        1,
        64,
        tags="cub",
        mutate=True,
    ),
    cuda(
        SCAN,
        "cub_reduce",
        lambda s: [blank(8), normal(s, 365), 365],
        block_results,
        4,
        96,
        tolerance=FLOAT,
        tags="cub",
        mutate=True,
    ),
    cuda(
        SCAN,
        "cub_radix_sort",
        lambda s: [integers(s, 0, 2**31, 256) >> integers(s, 0, 25, 256), integers(s, 0, 99, 256)],
        sorted_pairs,
        1,
        64,
        outputs=(0, 1),
        tags="cub",
        mutate=True,
    ),
    cuda(
        SCAN,
        "cub_merge_sort",
        lambda s: [uniform(s, -9, 9, 192)],
        lambda x: x.sort()[0],
        1,
        64,
        tags="cub",
        mutate=True,
    ),
    cuda(
        SCAN,
        "cub_warp",
        lambda s: [blank(4, dtype=INT32), blank(64, dtype=INT32), integers(s, -99, 99, 64)],
        warp_results,
        1,
        64,
        outputs=(0, 1),
        tags="cub",
    ),
    cuda(
        SCAN,
        "cub_runs",
        lambda s: [
            blank(128, dtype=INT32),
            blank(16, dtype=INT32),
            integers(s, 0, 16, 43, dtype=torch.uint8).repeat_interleave(3)[:128].contiguous(),
        ],
        runs,
        1,
        64,
        outputs=(0, 1),
        tags="cub atomics",
        mutate=True,
    ),
    cuda(
        SCAN,
        "cub_exchange",
        lambda s: [blank(256, dtype=INT32), integers(s, -99, 99, 256)],
        lambda y, x: x + torch.arange(256, dtype=INT32) % 4,
        1,
        64,
        tags="cub",
        mutate=True,
    ),
)
ENTRIES = (*MATMULS, *SCANS)
