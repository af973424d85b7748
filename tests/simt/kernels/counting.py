"""Entries of histogram_atomics.cu."""

from __future__ import annotations

from typing import Any

import torch

from .entry import Arguments, blank, blocks, cuda, integers, normal

FILE = "histogram_atomics.cu"
N = 2003
INT32, INT64 = torch.int32, torch.int64


def counted(bins: int) -> Any:
    def make(seed: int) -> Arguments:
        return [torch.zeros(bins, dtype=INT32), integers(seed, 0, 256, N, dtype=torch.uint8), N]

    return make


def histogram(y: torch.Tensor, x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.bincount(x.long() % len(y), minlength=len(y)).to(INT32)


def tickets(ring: Any, drawn: Any) -> list[torch.Tensor]:
    """96 threads: 0 up to 7 and again; 4 down to 0 and again, from the 2 that it starts at."""
    up = torch.tensor([12] * 8)
    down, value = torch.zeros(8, dtype=INT64), 2
    for _ in range(96):
        down[value] += 1
        value = 4 if value == 0 or value > 4 else value - 1
    return [torch.tensor([0, value]), torch.cat([up, down])]


def bitwise(word: torch.Tensor, wide: torch.Tensor, x: torch.Tensor, n: int) -> list[torch.Tensor]:
    words = [v & 0xFFFFFFFF for v in word.tolist()]
    for i, v in enumerate(x.tolist()):
        words[0] &= ~(1 << (v & 15))
        words[1] |= 1 << (v & 31)
        words[2] ^= 1 << (i & 31)
    words[3:] = [5, 1]
    low, high = int(x.min()) * 1000000007, int(x.max()) * 1000000007
    signed = [w - (1 << 32) if w >> 31 else w for w in words]
    return [torch.tensor(signed, dtype=INT32), torch.tensor([low, high, int(x.sum())])]


def float_sums(f: Any, d: Any, h: Any, b: Any, n: int) -> list[torch.Tensor]:
    i = torch.arange(n, dtype=torch.float64)
    odd = n // 2
    pairs = [n - odd, 2 * (n - odd), odd, 2 * odd, n - odd, odd]
    quarters = [v for k in range(4) for v in (len(range(k, n, 4)), -len(range(k, n, 4)))]
    return [
        torch.stack([i[k::4].sum() for k in range(4)]),
        torch.stack([0.25 * i[k::2].sum() for k in range(2)]),
        torch.tensor(pairs, dtype=torch.float64),
        torch.tensor(quarters, dtype=torch.float64),
    ]


def members(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The members of each of eight lists in order, the lists one after another."""
    head, following = (t.tolist() for t in outputs)
    found: list[int] = []
    for at in head:
        own = []
        while at >= 0:
            own.append(at)
            at = following[at]
        found += [*sorted(own), -1]
    return [torch.tensor(found)]


def listed(head: Any, following: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    found: list[int] = []
    for bucket in range(8):
        found += [*(i for i, v in enumerate(x.tolist()) if v & 7 == bucket), -1]
    return torch.tensor(found)


def hashed(table: torch.Tensor, tries: Any, keys: torch.Tensor, n: int, mask: int) -> torch.Tensor:
    own = sorted(set(keys.tolist()))
    return torch.tensor([-1] * (len(table) - len(own)) + own)


def queued(queue: torch.Tensor, size: Any, x: torch.Tensor, n: int) -> list[torch.Tensor]:
    kept = x[x > 0]
    rest = torch.full((n - len(kept),), -77)
    return [torch.cat([rest, kept]).sort()[0], torch.tensor([len(kept)])]


ENTRIES = (
    cuda(FILE, "histogram_global", counted(256), histogram, 4, 128, tags="atomics"),
    cuda(
        FILE,
        "histogram_shared",
        counted(64),
        histogram,
        4,
        96,
        tags="atomics counts",
        mutate=True,
    ),
    cuda(
        FILE,
        "histogram_warps",
        counted(16),
        histogram,
        4,
        128,
        shared=4 * 16 * 4,
        tags="atomics",
        mutate=True,
    ),
    cuda(FILE, "histogram_matched", counted(8), histogram, blocks(N, 96), 96, tags="atomics match"),
    cuda(
        FILE,
        "max_by_cas",
        lambda s: [torch.full((1,), -1e9, dtype=torch.float64), normal(s, 301).double(), 301],
        lambda y, x, n: x.max()[None],
        3,
        128,
        tags="atomics",
    ),
    cuda(
        FILE,
        "tickets",
        lambda s: [torch.tensor([0, 2], dtype=INT32), torch.zeros(16, dtype=INT32)],
        tickets,
        2,
        48,
        outputs=(0, 1),
        tags="atomics",
    ),
    cuda(
        FILE,
        "bitwise_atomics",
        lambda s: [
            torch.tensor([-1, 0, 0, 9, 0], dtype=INT32),
            torch.tensor([2**62, -(2**62), 0], dtype=INT64),
            integers(s, -(2**30), 2**30, 301),
            301,
        ],
        bitwise,
        3,
        128,
        outputs=(0, 1),
        tags="atomics",
    ),
    cuda(
        FILE,
        "float_atomics",
        lambda s: [
            torch.zeros(4),
            torch.zeros(2, dtype=torch.float64),
            torch.zeros(6, dtype=torch.float16),
            torch.zeros(8, dtype=torch.bfloat16),
            301,
        ],
        float_sums,
        3,
        128,
        outputs=(0, 1, 2, 3),
        tags="atomics half",
    ),
    cuda(
        FILE,
        "linked_lists",
        lambda s: [
            torch.full((8,), -1, dtype=INT32),
            blank(301, dtype=INT32),
            integers(s, 0, 999, 301),
            301,
        ],
        listed,
        3,
        128,
        outputs=(0, 1),
        canonical=members,
        tags="atomics",
    ),
    cuda(
        FILE,
        "hash_insert",
        lambda s: [
            torch.full((512,), -1, dtype=INT32),
            torch.zeros(1, dtype=INT32),
            integers(s, 0, 400, 301),
            301,
            511,
        ],
        hashed,
        3,
        128,
        canonical=lambda outputs: [outputs[0].sort()[0]],
        tags="atomics",
    ),
    cuda(
        FILE,
        "block_queue",
        lambda s: [
            blank(301, dtype=INT32),
            torch.zeros(1, dtype=INT32),
            integers(s, -99, 99, 301),
            301,
        ],
        queued,
        3,
        128,
        outputs=(0, 1),
        canonical=lambda outputs: [outputs[0].sort()[0], outputs[1]],
        tags="atomics",
        mutate=True,
    ),
)
