"""Entries of calls_printf.cu, coop.cu, async_copy.cu and interblock.cu."""

from __future__ import annotations

import math
from typing import Any

import torch

from .entry import EXACT, FLOAT, FUNCTION, blank, cuda, integers, normal, uniform

CALLS, COOP, ASYNC, BLOCKS = "calls_printf.cu", "coop.cu", "async_copy.cu", "interblock.cu"
INT32 = torch.int32
N = 301


def fourth(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.view_as_real(torch.view_as_complex(x.double()) ** 4)


def medians(y: torch.Tensor, x: torch.Tensor, n: int) -> torch.Tensor:
    y = y.clone()
    y[1:-1] = torch.stack([x[:-2], x[1:-1], x[2:]]).median(0)[0]
    return y


def folds(y: Any, x: torch.Tensor, rows: int, n: int) -> torch.Tensor:
    v = x.double() if x.dtype.is_floating_point else x.long()
    return torch.stack([v.sum(1), v.prod(1)], 1).to(
        torch.float64 if v.is_floating_point() else INT32
    )


REPORTED = uniform(1, 0, 1, 40)
LINES = "".join(
    f"thread {i} of report: {x:.3f}, {7 * i:5}, {1234567890123 * i}, 0x{i:x}%\n"
    for i, x in enumerate(REPORTED.tolist())
    if x > 0.5
)


def tile_results(y: Any, x: torch.Tensor) -> torch.Tensor:
    tiles = x.view(8, 8)
    inclusive = tiles.cumsum(1)
    return torch.cat([inclusive.flatten(), (inclusive - tiles).flatten()]).to(INT32)


def tile_votes(y: Any, x: torch.Tensor) -> torch.Tensor:
    sizes, ranks, odds, others = [], [], [], []
    for tile in x.view(2, 32).tolist():
        ballot = sum(1 << k for k, v in enumerate(tile) if v > 0)
        flags = any(v > 50 for v in tile) + 2 * all(v > -1000 for v in tile) + 4 * (ballot >> 28)
        for k, v in enumerate(tile):
            sizes.append(sum(w & 3 == v & 3 for w in tile))
            ranks.append(sum(w & 3 == v & 3 for w in tile[:k]))
            odds.append(sum(w & 1 == v & 1 for w in tile))
            others.append(flags)
    return torch.tensor(sizes + ranks + odds + others, dtype=INT32)


def group_results(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    padded = torch.zeros(len(y) // 2 * 128, dtype=INT32)
    padded[:n] = x
    parts = padded.view(-1, 128)
    return torch.stack([parts.sum(1), parts.max(1)[0]], 1).flatten().to(INT32)


def turned(y: Any, x: torch.Tensor, rounds: int) -> torch.Tensor:
    tiles = x.view(4, 16)
    for r in range(rounds):
        tiles = tiles.roll(-3, 1) + r
    return tiles.flatten().flip(0)


def kept(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    return [outputs[0].sort()[0], outputs[1]]


def packed(y: Any, count: Any, x: torch.Tensor, n: int) -> list[torch.Tensor]:
    own = x[x > 0]
    return [
        torch.cat([torch.full((n - len(own),), -77), own]).sort()[0],
        torch.tensor([len(own)]),
    ]


def weighted(y: Any, x: torch.Tensor, tiles: int) -> torch.Tensor:
    v = x.double().view(tiles, 64, 4).flip(1)
    return (v * torch.tensor([1, -1, 2, -1])).sum((0, 2))


def ring(y: Any, x: torch.Tensor, n: int, tiles: int) -> torch.Tensor:
    padded = torch.zeros(tiles * 128, dtype=torch.float64)
    padded[:n] = x
    at = (torch.arange(32)[:, None] + torch.arange(4) * 37) % 128
    return padded.view(tiles, 128)[:, at].sum(2).flatten()


def piped(y: Any, x: torch.Tensor, tiles: int) -> torch.Tensor:
    weight = torch.arange(1, tiles + 1)[:, None]
    return (x.view(tiles, 64).flip(1) * weight).sum(0).to(INT32)


def heat(steps: int) -> Any:
    def reference(a: torch.Tensor, *_: Any) -> torch.Tensor:
        v = a.double()
        for _step in range(steps):
            p = torch.nn.functional.pad(v, (1, 1))
            v = v + 0.25 * (p[:-2] - 2 * v + p[2:])
        return v

    return reference


def zeros(*shape: int, dtype: torch.dtype = INT32) -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype)


def total(*args: Any) -> torch.Tensor:
    x = next(a for a in args if torch.is_tensor(a) and a.numel() == N)
    return x.double().sum(0, keepdim=True)


CALL_ENTRIES = (
    cuda(
        CALLS,
        "fourth_power",
        lambda s: [blank(N, 2), normal(s, N, 2), N],
        fourth,
        3,
        128,
        tolerance=FLOAT,
        tags="call",
    ),
    cuda(
        CALLS,
        "median_of_three",
        lambda s: [blank(N, dtype=INT32), integers(s, -99, 99, N), N],
        medians,
        3,
        128,
        tags="call local",
    ),
    cuda(
        CALLS,
        "fold_rows<float>",
        lambda s: [blank(37, 2), uniform(s, 0.5, 1.5, 37, 9), 37, 9],
        folds,
        2,
        32,
        tolerance=FLOAT,
        tags="call",
    ),
    cuda(
        CALLS,
        "fold_rows<int>",
        lambda s: [blank(37, 2, dtype=INT32), integers(s, -7, 8, 37, 9), 37, 9],
        folds,
        2,
        32,
        tags="call",
    ),
    cuda(
        CALLS,
        "called_barriers",
        lambda s: [blank(3, 2), normal(s, 3, 128)],
        lambda y, x: torch.stack([x.double().mean(1), x.double().square().mean(1)], 1),
        3,
        128,
        tolerance=FLOAT,
        tags="call",
        mutate=True,
    ),
    cuda(
        CALLS,
        "report",
        lambda s: [REPORTED, 40],
        lambda x, n: x,
        1,
        64,
        tags="printf",
        printed=LINES,
    ),
    cuda(
        CALLS,
        "checked_root",
        lambda s: [blank(N), uniform(s, 0, 9, N), N],
        lambda y, x, n: x.double().sqrt(),
        3,
        128,
        tolerance=FUNCTION,
        tags="assert",
    ),
)
GROUP_ENTRIES = (
    cuda(
        COOP,
        "tile_sums",
        lambda s: [blank(12, dtype=INT32), integers(s, -99, 99, 192)],
        lambda y, x: x.view(12, 16).sum(1, dtype=INT32),
        3,
        64,
        tags="groups",
    ),
    cuda(
        COOP,
        "group_reduce",
        lambda s: [blank(6, dtype=INT32), integers(s, 1, 99, N), N],
        group_results,
        3,
        128,
        tags="groups",
        mutate=True,
    ),
    cuda(
        COOP,
        "aggregated",
        lambda s: [blank(N, dtype=INT32), zeros(1), integers(s, -99, 99, N), N],
        packed,
        3,
        128,
        outputs=(0, 1),
        canonical=kept,
        tags="groups atomics",
    ),
    cuda(
        COOP,
        "tile_scans",
        lambda s: [blank(128, dtype=INT32), integers(s, -99, 99, 64)],
        tile_results,
        1,
        64,
        tags="groups",
    ),
    cuda(
        COOP,
        "tile_votes",
        lambda s: [blank(256, dtype=INT32), integers(s, -99, 99, 64)],
        tile_votes,
        1,
        64,
        tags="groups match",
    ),
    cuda(
        COOP,
        "group_barriers",
        lambda s: [blank(64, dtype=INT32), integers(s, -99, 99, 64), 4],
        turned,
        1,
        64,
        tags="groups",
        mutate=True,
    ),
)
COPY_ENTRIES = (
    cuda(
        ASYNC,
        "copy_once",
        lambda s: [blank(3, 64), normal(s, 3, 64)],
        lambda y, x: x.flip(1),
        3,
        64,
        tags="cp.async",
        mutate=True,
    ),
    cuda(
        ASYNC,
        "double_buffer",
        lambda s: [blank(64), normal(s, 5, 64, 4), 5],
        weighted,
        1,
        64,
        tolerance=FLOAT,
        tags="cp.async",
        mutate=True,
    ),
    cuda(
        ASYNC,
        "ring_of_stages",
        lambda s: [blank(6 * 32), normal(s, 700), 700, 6],
        ring,
        1,
        32,
        tolerance=FLOAT,
        tags="cp.async",
        mutate=True,
    ),
    cuda(
        ASYNC,
        "thread_pipeline",
        lambda s: [blank(64, dtype=INT32), integers(s, -99, 99, 5, 64), 5],
        piped,
        1,
        64,
        tags="cp.async",
        mutate=True,
    ),
    cuda(
        ASYNC,
        "group_copy",
        lambda s: [blank(3, 77), normal(s, 3, 77), 77],
        lambda y, x, n: x.flip(1),
        3,
        64,
        shared=4 * 80,
        tags="cp.async groups",
        mutate=True,
    ),
    cuda(
        ASYNC,
        "matmul_async",
        lambda s: [blank(32, 48), normal(s, 32, 64), normal(s + 1, 64, 48), 32, 48, 64],
        lambda c, a, b, *_: a.double() @ b.double(),
        (3, 2),
        64,
        tolerance=FLOAT,
        tags="cp.async",
        mutate=True,
    ),
)
GRIDS = math.ceil(N / 64)
BLOCK_ENTRIES = (
    cuda(
        BLOCKS,
        "locked_sum",
        lambda s: [zeros(1), torch.zeros(1), normal(s, N), N],
        total,
        GRIDS,
        64,
        outputs=(1,),
        tolerance=FLOAT,
        tags="interblock",
    ),
    cuda(
        BLOCKS,
        "last_block_sum",
        lambda s: [blank(1), blank(GRIDS), zeros(1), normal(s, N), N],
        total,
        GRIDS,
        64,
        tolerance=FLOAT,
        tags="interblock",
        mutate=True,
    ),
    cuda(
        BLOCKS,
        "look_back",
        lambda s: [
            blank(N, dtype=INT32),
            zeros(GRIDS),
            blank(GRIDS, dtype=INT32),
            blank(GRIDS, dtype=INT32),
            zeros(1),
            integers(s, -99, 99, N),
            N,
        ],
        lambda y, a, b, c, d, x, n: x.cumsum(0).to(INT32),
        GRIDS,
        64,
        tags="interblock",
    ),
    cuda(
        BLOCKS,
        "heat_steps",
        lambda s: [normal(s, 200), blank(200), zeros(1), zeros(1), 200, 4],
        heat(4),
        4,
        64,
        tolerance=FLOAT,
        tags="interblock",
    ),
    cuda(
        BLOCKS,
        "warp_lock",
        lambda s: [zeros(1), zeros(1)],
        lambda lock, y: torch.tensor([31 * 16 * 3]),
        3,
        32,
        outputs=(1,),
        tolerance=EXACT,
        tags="interblock",
    ),
    cuda(
        BLOCKS,
        "warp_spin",
        lambda s: [zeros(1), zeros(1)],
        lambda lock, y: torch.tensor([32 * 33]),
        2,
        32,
        outputs=(1,),
        tags="interblock",
    ),
    cuda(
        BLOCKS,
        "mailbox",
        lambda s: [blank(4, 64, dtype=INT32), zeros(64), zeros(1), integers(s, -9, 9, 4, 64), 4],
        lambda y, box, full, x, rows: x * 3,
        2,
        64,
        tags="interblock",
    ),
    cuda(
        BLOCKS,
        "released",
        lambda s: [blank(32, dtype=INT32), zeros(32), zeros(1), integers(s, -9, 9, 32)],
        lambda y, box, flag, x: x.flip(0) + 1,
        2,
        32,
        tags="interblock",
    ),
)
ENTRIES = (*CALL_ENTRIES, *GROUP_ENTRIES, *COPY_ENTRIES, *BLOCK_ENTRIES)
