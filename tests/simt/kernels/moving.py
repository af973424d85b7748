"""Entries of reduce.cu, softmax_norm.cu and transpose.cu."""

from __future__ import annotations

from typing import Any

import torch

from .entry import (
    BFLOAT,
    FLOAT,
    FUNCTION,
    Arguments,
    blank,
    blocks,
    cuda,
    integers,
    normal,
    uniform,
)

REDUCE, NORM, MOVE = "reduce.cu", "softmax_norm.cu", "transpose.cu"
N = 1009
INT32 = torch.int32


def partial_sums(each: int) -> Any:
    """The sums of every `each` elements."""

    def reference(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
        padded = torch.zeros(len(y) * each, dtype=torch.float64)
        padded[:n] = x
        return padded.view(-1, each).sum(1)

    return reference


def strided_sums(y: Any, x: torch.Tensor, n: int, block: int) -> torch.Tensor:
    """By blocks that walk the data in strides of the whole grid."""
    step = len(y) * block
    padded = torch.zeros(blocks(n, step) * step, dtype=torch.float64)
    padded[:n] = x
    return padded.view(-1, len(y), block).sum((0, 2))


def votes(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    rows = []
    for part in x.split(96):
        positive = part > 0
        rows.append([int(positive.sum()), int(positive.all()), int(positive.any())])
    return torch.tensor(rows, dtype=INT32).flatten()


def batch_statistics(a: Any, b: Any, x: torch.Tensor, N: int, C: int, L: int) -> list[torch.Tensor]:
    v = x.double().view(N, C, L).transpose(0, 1).reshape(C, -1)
    return [v.mean(1), v.var(1, unbiased=False)]


def packed_argmax(best: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    at = int(x.argmax())
    bits = int(x[at].view(torch.int32))
    return torch.tensor([bits << 32 | (0xFFFFFFFF - at)], dtype=torch.int64)


def rows_of(rows: int, n: int) -> Any:
    def make(seed: int) -> Arguments:
        return [blank(rows, n), normal(seed, rows, n) * 3, n]

    return make


def softmax(y: Any, x: torch.Tensor, *_: Any) -> torch.Tensor:
    return x.double().softmax(1)


def layernorm(y: Any, x: Any, w: Any, b: Any, eps: float, n: int) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x.double(), (n,), w.double(), b.double(), eps)


def rmsnorm(y: Any, x: Any, w: Any, eps: float, pairs: int) -> torch.Tensor:
    v = x.double()
    return v * (v.square().mean(1, keepdim=True) + eps).rsqrt() * w.double()


def columns(y: Any, x: torch.Tensor, height: int, width: int) -> torch.Tensor:
    return torch.nn.functional.unfold(x[None, None], 3, padding=1).flatten()


def tree(n: int) -> Any:
    return lambda s: [blank(blocks(N, n)), normal(s, N), N]


ROWS, COLUMNS = 70, 45
TILES = (blocks(COLUMNS, 32), blocks(ROWS, 32))


def image(seed: int) -> Arguments:
    return [blank(COLUMNS, ROWS), normal(seed, ROWS, COLUMNS), ROWS, COLUMNS]


REDUCTIONS = (
    cuda(
        REDUCE,
        "sum_tree",
        tree(128),
        partial_sums(128),
        blocks(N, 128),
        128,
        shared=512,
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "sum_tree_unrolled",
        tree(256),
        partial_sums(256),
        blocks(N, 256),
        128,
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "sum_shuffle",
        lambda s: [blank(3), normal(s, 4001), 4001],
        lambda y, x, n: strided_sums(y, x, n, 256),
        3,
        256,
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "sum_shuffle",
        lambda s: [blank(1), normal(s, 4001), 4001],
        lambda y, x, n: x.double().sum(0, keepdim=True),
        1,
        1024,
        name="sum_shuffle 1024 threads",
        tolerance=FLOAT,
    ),
    cuda(
        REDUCE,
        "sum_atomic",
        lambda s: [torch.zeros(1), uniform(s, 0, 1, N), N],
        lambda y, x, n: x.double().sum(0, keepdim=True),
        blocks(N, 128),
        128,
        tolerance=FLOAT,
        tags="atomics",
    ),
    cuda(
        REDUCE,
        "argmax_packed",
        lambda s: [torch.zeros(1, dtype=torch.int64), uniform(s, 0, 1, N), N],
        packed_argmax,
        blocks(N, 128),
        128,
        tags="atomics",
    ),
    cuda(
        REDUCE,
        "argmax_rows",
        lambda s: [blank(5, dtype=INT32), integers(s, -99, 99, 5, 301).float(), 301],
        lambda y, x, n: torch.tensor([int((r == r.max()).nonzero()[0]) for r in x], dtype=INT32),
        5,
        128,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "count_votes",
        lambda s: [
            blank(3 * 5, dtype=INT32),
            torch.cat([torch.ones(96, dtype=INT32), integers(s, -9, 9, 317)]),
            413,
        ],
        votes,
        5,
        96,
    ),
    cuda(
        REDUCE,
        "dot_float4",
        lambda s: [blank(2), normal(s, 1100), normal(s + 1, 1100), 275],
        lambda z, x, y, n: strided_sums(z, (x.double() * y), 1100, 512),
        2,
        128,
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "welford_rows",
        lambda s: [blank(3), blank(3), normal(s, 3, 301) + 5, 301],
        lambda a, b, x, n: [x.double().mean(1), x.double().var(1, unbiased=False)],
        3,
        64,
        outputs=(0, 1),
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "sum_columns",
        lambda s: [blank(45), normal(s, 70, 45), 70, 45],
        lambda y, x, r, c: x.double().sum(0),
        2,
        (32, 8),
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "minimum_maximum",
        lambda s: [
            torch.tensor([2**31 - 1, -(2**31)], dtype=INT32),
            integers(s, -(2**30), 2**30, N),
            N,
        ],
        lambda y, x, n: torch.stack([x.min(), x.max()]),
        blocks(N, 128),
        128,
        tags="atomics",
    ),
    cuda(
        REDUCE,
        "sum_compensated",
        lambda s: [blank(1), normal(s, N), N],
        lambda y, x, n: x.double().sum(0, keepdim=True),
        1,
        64,
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        REDUCE,
        "norm_rows",
        lambda s: [blank(10), normal(s, 10, 61), 10, 61],
        lambda y, x, rows, n: x.double().norm(dim=1),
        3,
        (32, 4),
        tolerance=FLOAT,
        mutate=True,
    ),
)
NORMS = (
    cuda(
        NORM,
        "softmax<float>",
        rows_of(7, 301),
        softmax,
        7,
        64,
        tolerance=FUNCTION,
        mutate=True,
        tags="counts",
    ),
    cuda(
        NORM,
        "softmax<float>",
        rows_of(7, 301),
        softmax,
        7,
        64,
        name="softmax fast math",
        flags=("-use_fast_math",),
        tolerance=FUNCTION,
    ),
    cuda(
        NORM,
        "softmax<__nv_bfloat16>",
        lambda s: [t.bfloat16() if torch.is_tensor(t) else t for t in rows_of(5, 173)(s)],
        softmax,
        5,
        64,
        tolerance=BFLOAT,
    ),
    cuda(
        NORM,
        "softmax_warp",
        lambda s: [blank(10, 77), normal(s, 10, 77), 10, 77],
        softmax,
        3,
        128,
        tolerance=FUNCTION,
    ),
    cuda(NORM, "softmax_online", rows_of(7, 301), softmax, 7, 32, tolerance=FUNCTION, mutate=True),
    cuda(
        NORM,
        "layernorm",
        lambda s: [
            blank(5, 301),
            normal(s, 5, 301) + 2,
            normal(s + 1, 301),
            normal(s + 2, 301),
            1e-5,
            301,
        ],
        layernorm,
        5,
        128,
        shared=4 * 301,
        tolerance=FLOAT,
        mutate=True,
    ),
    cuda(
        NORM,
        "rmsnorm_bf16",
        lambda s: [
            blank(5, 302, dtype=torch.bfloat16),
            normal(s, 5, 302, dtype=torch.bfloat16),
            normal(s + 1, 302, dtype=torch.bfloat16),
            1e-6,
            151,
        ],
        rmsnorm,
        5,
        128,
        tolerance=BFLOAT,
        mutate=True,
    ),
    cuda(
        NORM,
        "cross_entropy",
        lambda s: [
            blank(9),
            normal(s, 9, 211),
            torch.cat([torch.tensor([-1]), integers(s, 0, 211, 8, dtype=torch.int64)]),
            211,
        ],
        lambda y, x, label, n: torch.nn.functional.cross_entropy(
            x.double(), label, reduction="none", ignore_index=-1
        ),
        9,
        64,
        tolerance=FUNCTION,
        mutate=True,
    ),
    cuda(
        NORM,
        "batch_statistics",
        lambda s: [blank(5), blank(5), normal(s, 3 * 5 * 41), 3, 5, 41],
        batch_statistics,
        5,
        96,
        outputs=(0, 1),
        tolerance=FLOAT,
        mutate=True,
    ),
)
TRANSPOSES = (
    *(
        cuda(
            MOVE,
            kernel,
            image,
            lambda y, x, r, c: x.T,
            TILES,
            (32, 8),
            tags="counts",
            mutate=kernel != "transpose_naive",
        )
        for kernel in (
            "transpose_naive",
            "transpose_tiled<0>",
            "transpose_tiled<1>",
            "transpose_swizzled",
        )
    ),
    cuda(
        MOVE,
        "transpose_in_place",
        lambda s: [normal(s, 41, 41), 41],
        lambda x, n: x.T,
        (3, 3),
        (16, 16),
        mutate=True,
    ),
    cuda(
        MOVE,
        "transpose_registers",
        lambda s: [blank(44, 68), normal(s, 68, 44), 68, 44],
        lambda y, x, r, c: x.T,
        (2, 3),
        (8, 8),
    ),
    cuda(
        MOVE,
        "image_to_columns",
        lambda s: [blank(9 * 13 * 19), normal(s, 13, 19), 13, 19],
        columns,
        (3, 2),
        (8, 8),
    ),
    cuda(
        MOVE,
        "reverse_rows",
        lambda s: [blank(4, 61, dtype=INT32), integers(s, -99, 99, 4, 61), 4, 61],
        lambda y, x, rows, n: x.flip(1),
        1,
        64,
        mutate=True,
    ),
)
ENTRIES = (*REDUCTIONS, *NORMS, *TRANSPOSES)
