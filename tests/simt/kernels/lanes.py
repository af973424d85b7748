"""Entries of warp.cu and memory_spaces.cu."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import torch

from .entry import FLOAT, FUNCTION, Arguments, Pointers, blank, blocks, cuda, integers, normal

WARP, SPACES = "warp.cu", "memory_spaces.cu"
INT32 = torch.int32
LANES = list(range(32))
N = 301


def ints(values: Any) -> torch.Tensor:
    wrapped = [(int(v) + 2**31) % 2**32 - 2**31 for v in values]
    return torch.tensor(wrapped, dtype=INT32)


def shuffles(y: Any, x: torch.Tensor) -> torch.Tensor:
    v = x.tolist()
    out = [v[(lane * 7 + 3) % 32] for lane in LANES]
    out += [v[lane - 3] if lane >= 3 else v[lane] for lane in LANES]
    out += [v[lane + 5] if lane < 27 else v[lane] for lane in LANES]
    out += [v[lane ^ 21] for lane in LANES]
    out += [v[lane // 8 * 8 + 2] for lane in LANES]
    out += [v[lane - 2] if lane % 16 >= 2 else v[lane] for lane in LANES]
    out += [v[lane + 3] if lane % 8 < 5 else v[lane] for lane in LANES]
    out += [v[lane ^ 3] for lane in LANES]
    out += [v[(lane + 2) % 32] if lane & 1 else v[lane ^ 4] for lane in LANES]
    out += [v[min(lane + 1, 31)] for lane in LANES]
    return ints(out + [v[lane ^ 1] + (lane ^ 1) for lane in LANES])


def mask(which: Any) -> int:
    return sum(1 << lane for lane in LANES if which(lane))


def votes(y: Any, x: torch.Tensor) -> torch.Tensor:
    v = x.tolist()
    out = [mask(lambda k: v[k] > 0)] * 32
    out += [(3 in v) | (max(v) < 100) << 1] * 32
    out += [mask(lambda k, a=a: v[k] & 3 == a & 3) for a in v]
    same = all(a & 64 == v[0] & 64 for a in v)
    out += [0xFFFFFFFF + 1 if same else 0] * 32
    for a in v:
        if a & 1:
            out.append(mask(lambda k: v[k] & 1 and v[k] > 5))
        else:
            out.append(mask(lambda k, a=a: v[k] == a))
    return ints(out)


def reductions(y: Any, x: torch.Tensor) -> torch.Tensor:
    low, high = x[:12], x[12:]
    adds = [int(low.sum())] * 12 + [2 * int(high.sum())] * 20
    ends = [int(low.min())] * 12 + [int(high.max())] * 20
    every, some, odd = -1, 0, 0
    for v in x.tolist():
        every, some, odd = every & v, some | v, odd ^ v
    return ints(adds + ends + [every] * 32 + [some] * 32 + [odd] * 32)


def collatz(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    out = []
    for v in x.tolist():
        steps = 0
        while v != 1:
            v, steps = 3 * v + 1 if v & 1 else v // 2, steps + 1
        out.append(steps)
    return ints(out)


def nested(v: int) -> int:
    total = 0
    for a in range(7):
        if (v + a) % 3 == 0:
            continue
        for b in range(v % 9):
            if b == a:
                break
            if (b * v) % 5 == 2:
                continue
            if total > 60:
                return total
            total += b + 1
            c = v & 7
            while True:
                total += c & 1
                if c == 5:
                    break
                c -= 1
                if c <= 0:
                    break
    return -total


def escapes(y: Any, width: int, height: int) -> torch.Tensor:
    i = torch.arange(width * height)
    cr = -2 + (3.0 * (i % width)).float() / width
    ci = -1 + (2.0 * (i // width)).float() / height
    zr, zi = torch.zeros_like(cr), torch.zeros_like(ci)
    k = torch.zeros(len(i), dtype=INT32)
    for _ in range(64):
        go = zr * zr + zi * zi <= 4
        k += go.to(INT32)
        zr, zi = torch.where(go, zr * zr - zi * zi + cr, zr), torch.where(go, 2 * zr * zi + ci, zi)
    return k


def segmented(y: Any, key: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out: list[int] = []
    for i, (k, v) in enumerate(zip(key.tolist(), x.tolist())):
        again = i % 32 and key[i - 1] == k
        out.append(v + (out[-1] if again else 0))
    return ints(out)


def named(y: Any, x: torch.Tensor) -> torch.Tensor:
    kept = x.view(2, 64)
    for r in range(3):
        kept = kept.roll(-37, 1) + r
    return kept.flatten().flip(0)


def around(y: Any, x: torch.Tensor, rounds: int) -> torch.Tensor:
    for r in range(rounds):
        x = x.roll(-1) + r
    return x.flip(0)


def lived(x: torch.Tensor, steps: int) -> torch.Tensor:
    x = x.clone()
    for _ in range(steps):
        near = -x
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                near = near + x.roll((i, j), (0, 1))
        x = ((near == 3) | ((near == 2) & (x == 1))).to(INT32)
    return x.flip(0, 1)


def row(n: int = N, out: int = N, low: int = -99, high: int = 99) -> Any:
    return lambda s: [blank(out, dtype=INT32), integers(s, low, high, n), n]


def warp_row(out: int, low: int = -9, high: int = 99) -> Any:
    return lambda s: [blank(out, dtype=INT32), integers(s, low, high, 32)]


WARPS = (
    cuda(WARP, "shuffles", warp_row(352, 0), shuffles, 1, 32),
    cuda(WARP, "votes", warp_row(160, -9, 9), votes, 1, 32, tags="match"),
    cuda(WARP, "reductions", warp_row(160, 5, 999), reductions, 1, 32),
    cuda(WARP, "collatz", row(low=1, high=9999), collatz, 3, 128),
    cuda(
        WARP,
        "nested_ways",
        row(low=0, high=999),
        lambda y, x, n: ints(map(nested, x.tolist())),
        3,
        128,
    ),
    cuda(
        WARP,
        "mandelbrot",
        lambda s: [blank(37 * 23, dtype=INT32), 37, 23],
        escapes,
        7,
        128,
        flags=("--fmad=false",),  # a point at the edge decides by its last bit
    ),
    cuda(
        WARP,
        "warp_transpose",
        lambda s: [blank(32, 32, dtype=INT32), integers(s, 0, 999, 32, 32)],
        lambda y, x: x.T,
        1,
        32,
    ),
    cuda(WARP, "warp_sort", lambda s: [normal(s, 3, 32)], lambda x: x.sort(1)[0], 1, 96),
    cuda(
        WARP,
        "segmented_scan",
        lambda s: [
            blank(64, dtype=INT32),
            integers(s, 0, 2, 16).cumsum(0).to(INT32).repeat_interleave(4),
            integers(s, -9, 9, 64),
        ],
        segmented,
        1,
        64,
    ),
    cuda(
        WARP,
        "leave_early",
        row(77, 77),
        lambda y, x, n: x.flip(0),
        1,
        128,
        mutate=True,
    ),
    cuda(
        WARP,
        "named_barriers",
        lambda s: [blank(128, dtype=INT32), integers(s, 0, 999, 128)],
        named,
        1,
        128,
        mutate=True,
        tags="named",
    ),
    cuda(
        WARP,
        "producer_consumer",
        lambda s: [blank(5, 32, dtype=INT32), integers(s, 0, 999, 5, 32), 5],
        lambda y, x, r: (x + 1).flip(1),
        1,
        64,
        mutate=True,
        tags="named",
    ),
    cuda(
        WARP,
        "ring",
        lambda s: [blank(32, dtype=INT32), integers(s, 0, 999, 32), 5],
        around,
        1,
        32,
        mutate=True,
    ),
    cuda(
        WARP,
        "life",
        lambda s: [integers(s, 0, 2, 16, 16), 5],
        lived,
        1,
        (16, 16),
        mutate=True,
    ),
)


def smooth(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    at = torch.arange(n)
    parts = [w * x.double()[(at + k - 2).clamp(0, n - 1)] for k, w in enumerate((1, 4, 6, 4, 1))]
    return torch.stack(parts).sum(0) / 16


TABLE = integers(5, -99, 99, 64)
PRIMES = torch.tensor([2, 3, 5, 7, 11, 13, 17, 19], dtype=INT32)


def particles(seed: int) -> Arguments:
    packed = b""
    for k in range(77):
        values = normal(seed + k, 4).tolist()
        packed += struct.pack("<3fh6s4xd", *values[:3], k - 9, bytes(range(k, k + 6)), values[3])
    x = torch.frombuffer(bytearray(packed), dtype=torch.uint8)
    return [torch.zeros_like(x), x, 77]


def moved(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    packed = b""
    raw = bytes(x.tolist())
    for i in range(n):
        a, b, c, kind, tag, mass = struct.unpack("<3fh6s4xd", raw[32 * i : 32 * i + 32])
        position, tag = torch.tensor([a, b, c]), bytearray(tag)
        position[i % 3] += torch.tensor(mass).float()
        tag[i % 6] = kind & 0xFF
        packed += struct.pack("<3fh6s4xd", *position.tolist(), kind, bytes(tag), 2 * mass)
    return torch.frombuffer(bytearray(packed), dtype=torch.uint8)


def carved(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    v, t = x.double(), torch.arange(n)
    return v.flip(0) * 0.5 + (v + 1).roll(-1) + ((t * 3) % 256).roll(-2) + v[t % 32]


def smallest(y: Any, x: torch.Tensor, each: int) -> torch.Tensor:
    return x.sort(0)[0][:8]


def local_bins(y: Any, x: torch.Tensor, each: int) -> torch.Tensor:
    return torch.stack([((x & 15) == k).sum(0) for k in range(16)]).to(INT32)


def words(step: int) -> Callable[[int], Arguments]:
    return lambda s: [blank(32), normal(s, 32 * step)]


def every(step: int) -> Callable[..., torch.Tensor]:
    return lambda y, x: x[::step]


def hinted(seed: int) -> Arguments:
    quads = (blank(77, 4, dtype=INT32), integers(seed, 0, 99, 77, 4))
    return [*quads, integers(seed + 1, 0, 99, 77), 77]


def hints(y: Any, x: torch.Tensor, e: torch.Tensor, n: int) -> torch.Tensor:
    return x + e[:, None] * torch.tensor([2, 1, 1, 2], dtype=INT32)


def buffers(seed: int) -> Arguments:
    rows = [normal(seed + k, N) for k in range(3)]
    return [[*rows, blank(N), struct.pack("<i3f", N, 0.5, 2.0, -1.0)]]


def gathered(b: list[Any]) -> torch.Tensor:
    return 0.5 * b[0].double() + 2 * b[1].double() - b[2].double()


def pointed(seed: int) -> Arguments:
    rows = [integers(seed + k, -9, 9, 50) for k in range(4)]
    pointers = torch.tensor([r.data_ptr() for r in rows], dtype=torch.int64)
    return [blank(4, 50, dtype=INT32), Pointers(pointers, rows), 50]


SPACE = (
    cuda(
        SPACES,
        "smooth",
        lambda s: [blank(N), normal(s, N), N],
        smooth,
        3,
        128,
        tolerance=FLOAT,
        tags="constant",
    ),
    cuda(
        SPACES,
        "look_up",
        row(),
        lambda y, x, n: TABLE[(x & 63).long()] + PRIMES[torch.arange(n) & 7],
        3,
        128,
        constants={"table": TABLE},
        tags="constant",
    ),
    cuda(
        SPACES,
        "count_in_module",
        lambda s: [torch.zeros(64, dtype=INT32)],
        lambda y: torch.ones(64, dtype=INT32),
        2,
        32,
        constants={"total": torch.zeros(1, dtype=INT32)},
    ),
    cuda(
        SPACES,
        "smallest_eight",
        lambda s: [blank(8, 64, dtype=INT32), integers(s, -999, 999, 23, 64), 23],
        smallest,
        1,
        64,
        tags="local",
    ),
    cuda(
        SPACES,
        "local_histogram",
        lambda s: [blank(16, 32, dtype=INT32), integers(s, 0, 256, 50, 32, dtype=torch.uint8), 50],
        local_bins,
        1,
        32,
        tags="local",
    ),
    cuda(SPACES, "move_particles", particles, moved, 1, 96, tags="local structs"),
    cuda(
        SPACES,
        "carved",
        lambda s: [blank(77, dtype=torch.float64), normal(s, 77), 77],
        carved,
        1,
        96,
        shared=77 * 13,
        tolerance=FUNCTION,
        mutate=True,
    ),
    *(
        cuda(
            SPACES,
            f"bank_conflicts<{step}>",
            words(step),
            every(step),
            1,
            32,
            tags="counts",
            mutate=step == 32,
        )
        for step in (1, 2, 32, 33)
    ),
    cuda(
        SPACES,
        "shared_float4",
        lambda s: [blank(64, 4), normal(s, 64, 4)],
        lambda y, x: x[torch.arange(64) ^ 5],
        1,
        64,
        tags="counts",
        mutate=True,
    ),
    cuda(SPACES, "hints", hinted, hints, 1, 96),
    cuda(
        SPACES,
        "volatile_tree",
        lambda s: [blank(3, dtype=INT32), integers(s, -9, 9, 3, 32)],
        lambda y, x: x.sum(1, dtype=INT32),
        3,
        32,
    ),
    cuda(
        SPACES,
        "gather_buffers",
        buffers,
        gathered,
        blocks(N, 128),
        128,
        tolerance=FLOAT,
        tags="structs",
    ),
    cuda(
        SPACES,
        "table_of_pointers",
        pointed,
        lambda y, p, columns: torch.stack(p.rows) * 2,
        4,
        32,
        tags="structs",
    ),
    cuda(
        SPACES,
        "scratch",
        lambda s: [blank(N), blank(3, N), normal(s, N), N],
        lambda y, work, x, n: x.double() * 6,
        3,
        128,
        tolerance=FUNCTION,
        unwritten=(0, 1),
    ),
)
ENTRIES = (*WARPS, *SPACE)
