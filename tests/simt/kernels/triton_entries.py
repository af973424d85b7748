"""Entries of triton_kernels.py. `grid` is Triton's; warps are in the constants, or four."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .entry import (
    BFLOAT,
    EXACT,
    FAST,
    FLOAT,
    FUNCTION,
    HALF,
    Arguments,
    Entry,
    blank,
    blocks,
    integers,
    listed,
    normal,
    permutation,
    uniform,
)

INT32, INT64 = torch.int32, torch.int64
F16, BF16, F32, I8 = torch.float16, torch.bfloat16, torch.float32, torch.int8
N = 1009


def entry(
    kernel: str,
    make: Callable[[int], Arguments],
    reference: Callable[..., Any],
    grid: int | tuple[int, ...],
    *,
    name: str = "",
    tags: str = "",
    constants: dict[str, Any],
    **more: Any,
) -> Entry:
    return Entry(
        name=f"triton {name or kernel}",
        way="triton",
        source="triton_kernels.py",
        kernel=kernel,
        make=make,
        reference=listed(reference),
        grid=(grid,) if isinstance(grid, int) else grid,
        constants=constants,
        tags=frozenset(tags.split()),
        **more,
    )


def rows(count: int, n: int) -> Callable[[int], Arguments]:
    return lambda s: [blank(count, n), normal(s, count, n) * 3, n]


def softmax(y: Any, x: torch.Tensor, n: int) -> torch.Tensor:
    return x.double().softmax(1)


def layernorm(y: Any, x: Any, w: Any, b: Any, eps: float, n: int) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x.double(), (n,), w.double(), b.double(), eps)


def rmsnorm(y: Any, x: Any, w: Any, eps: float, n: int) -> torch.Tensor:
    v = x.double()
    return v * (v.square().mean(1, keepdim=True) + eps).rsqrt() * w.double()


def factors(
    dtype: torch.dtype, out: torch.dtype = F32, m: int = 37, n: int = 41, k: int = 53
) -> Any:
    def make(seed: int) -> Arguments:
        if dtype is I8:
            a, b = (
                integers(seed + j, -128, 128, *s, dtype=I8) for j, s in enumerate(((m, k), (k, n)))
            )
        else:
            a, b = normal(seed, m, k).to(dtype), normal(seed + 1, k, n).to(dtype)
        return [blank(m, n, dtype=out), a, b, m, n, k]

    return make


def product(c: Any, a: torch.Tensor, b: torch.Tensor, *_: Any) -> torch.Tensor:
    if a.dtype is I8:
        return (a.long() @ b.long()).to(INT32)
    return a.double() @ b.double()


def truncated_product(c: Any, a: torch.Tensor, b: torch.Tensor, *_: Any) -> torch.Tensor:
    """Triton leaves rounding to TF32 to the matrix unit, which ignores the low 13 bits."""
    short = [(t.view(INT32) & ~0x1FFF).view(F32).double() for t in (a, b)]
    return short[0] @ short[1]


def heads(seed: int, count: int = 2, n: int = 45, d: int = 16) -> Arguments:
    shape = (count, n, d)
    three = [normal(seed + k, *shape, dtype=F16) for k in range(3)]
    return [blank(*shape), *three, blank(count, n), 1 / math.sqrt(d), n]


def scores(q: torch.Tensor, k: torch.Tensor, scale: float) -> torch.Tensor:
    s = q.double() @ k.double().transpose(-1, -2) * scale
    n = s.shape[-1]
    return s.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf)


def attention(o: Any, q: Any, k: Any, v: Any, lse: Any, scale: float, n: int) -> Any:
    s = scores(q, k, scale)
    return [s.softmax(-1) @ v.double(), s.logsumexp(-1)]


def backward(seed: int) -> Arguments:
    q, k, g = (normal(seed + j, 45, 16, dtype=F16) for j in range(3))
    return [blank(45, 16), q, k, g, scores(q, k, 0.25).logsumexp(-1).float(), 0.25, 45]


def backward_v(dv: Any, q: Any, k: Any, g: Any, lse: Any, scale: float, n: int) -> torch.Tensor:
    return scores(q, k, scale).softmax(-1).T @ g.double()


def recurrence(y: Any, a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    h, out = torch.zeros(len(a), dtype=torch.float64), []
    for t in range(n):
        h = a[:, t].double() * h + b[:, t].double()
        out.append(h)
    return torch.stack(out, 1)


def philox(seed: int, offset: int) -> float:
    """tl.rand: the first word of Philox 4x32-10 as a number of [0, 1)."""
    c, key, word = [offset, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32], 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ key[0], b & word, a >> 32 ^ c[3] ^ key[1], a & word]
        key = [(key[0] + 0x9E3779B9) & word, (key[1] + 0xBB67AE85) & word]
    signed = c[0] - (1 << 32) if c[0] >> 31 else c[0]
    return (-signed - 1 if signed < 0 else signed) * 4.6566127342e-10


def dropped(y: Any, x: torch.Tensor, p: float, seed: int, n: int) -> torch.Tensor:
    keep = torch.tensor([philox(seed, i) > p for i in range(n)])
    return torch.where(keep, x.double() / (1 - p), 0.0)


def scattered(y: torch.Tensor, x: torch.Tensor, index: torch.Tensor, n: int) -> torch.Tensor:
    return y.double().index_add(0, index.long(), x.double())


def convolution(seed: int) -> Arguments:
    return [
        blank(91, 16),
        normal(seed, 7, 13, 16, dtype=F16),
        normal(seed + 1, 9, 16, 16, dtype=F16),
        7,
        13,
    ]


def convolved(y: Any, x: torch.Tensor, w: torch.Tensor, h: int, width: int) -> torch.Tensor:
    weight = w.double().view(3, 3, 16, 16).permute(3, 2, 0, 1)
    out = torch.nn.functional.conv2d(x.double().permute(2, 0, 1)[None], weight, padding=1)
    return out[0].permute(1, 2, 0).reshape(91, 16)


def turned(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, n: int) -> torch.Tensor:
    a, b = q.double().chunk(2, 1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], 1)


def swish(dx: Any, x: torch.Tensor, dy: torch.Tensor, n: int) -> torch.Tensor:
    s = x.double().sigmoid()
    return dy * s * (1 + x * (1 - s))


def largest(index: Any, most: Any, x: torch.Tensor, n: int) -> list[torch.Tensor]:
    return [torch.tensor([int((r == r.max()).nonzero()[0]) for r in x]), x.max(1)[0]]


TILE = {"BM": 32, "BN": 32, "BK": 32}
TOLD = "".join(f"pid (0, 0, 0) idx ({i:2}) x: {i * 3}\n" for i in range(32))
ENTRIES = (
    entry(
        "square",
        lambda s: [blank(N), normal(s, N), N],
        lambda y, x, n: x.square(),
        2,
        constants={"BLOCK": 512},
        tags="counts",
    ),
    entry(
        "softmax", rows(5, 301), softmax, 5, constants={"BLOCK": 512}, tolerance=FAST, tags="counts"
    ),
    entry(
        "softmax",
        rows(3, 77),
        softmax,
        3,
        name="softmax one warp",
        constants={"BLOCK": 128, "num_warps": 1},
        tolerance=FAST,
    ),
    entry("softmax_online", rows(3, 301), softmax, 3, constants={"BLOCK": 128}, tolerance=FAST),
    entry(
        "layernorm",
        lambda s: [blank(5, 301), normal(s, 5, 301) + 2, normal(s, 301), normal(s, 301), 1e-5, 301],
        layernorm,
        5,
        constants={"BLOCK": 512},
        tolerance=FLOAT,
        mutate=True,
    ),
    entry(
        "rmsnorm",
        lambda s: [
            blank(5, 301, dtype=BF16),
            normal(s, 5, 301, dtype=BF16),
            normal(s, 301, dtype=BF16),
            1e-6,
            301,
        ],
        rmsnorm,
        5,
        constants={"BLOCK": 512},
        tolerance=BFLOAT,
    ),
    entry(
        "histogram",
        lambda s: [torch.zeros(32, dtype=INT32), integers(s, 0, 32, N), N],
        lambda y, x, n: torch.bincount(x, minlength=32).to(INT32),
        4,
        constants={"BINS": 32, "BLOCK": 256},
        tags="atomics",
    ),
    *(
        entry(
            "matmul",
            factors(dtype, INT32 if dtype is I8 else F32),
            truncated_product if name == "tf32" else product,
            (2, 2),
            name=f"matmul {name}",
            constants={**TILE, "PRECISION": "ieee" if name == "ieee" else "tf32"},
            tolerance=EXACT if dtype is I8 else FLOAT,
            tags="mma",
        )
        for name, dtype in (
            ("fp16", F16),
            ("bf16", BF16),
            ("tf32", F32),
            ("ieee", F32),
            ("int8", I8),
        )
    ),
    entry(
        "matmul_split_k",
        lambda s: [torch.zeros(37, 41), *factors(F16, k=150)(s)[1:]],
        product,
        (2, 2, 3),
        constants={**TILE, "SPLITS": 3},
        tolerance=FLOAT,
        tags="mma atomics",
    ),
    entry(
        "attention",
        heads,
        attention,
        (2, 2),
        constants={"D": 16, "BM": 32, "BN": 32},
        outputs=(0, 4),
        tolerance=HALF,
        tags="mma",
    ),
    entry(
        "attention_backward_v",
        backward,
        backward_v,
        2,
        constants={"D": 16, "BM": 32, "BN": 32},
        tolerance=HALF,
        tags="mma",
    ),
    entry(
        "cumsum",
        lambda s: [blank(3, 301, dtype=INT32), integers(s, -99, 99, 3, 301), 301],
        lambda y, x, n: x.cumsum(1).to(INT32),
        3,
        constants={"BLOCK": 512},
    ),
    entry(
        "linear_recurrence",
        lambda s: [blank(3, 101), uniform(s, 0.5, 1, 3, 101), normal(s, 3, 101), 101],
        recurrence,
        3,
        constants={"BLOCK": 128},
        tolerance=FLOAT,
    ),
    entry(
        "sort_rows",
        lambda s: [blank(2, 128), normal(s, 2, 128)],
        lambda y, x: x.sort(1)[0],
        2,
        constants={"N": 128, "num_warps": 2},
    ),
    entry(
        "cross_entropy",
        lambda s: [
            blank(5),
            normal(s, 5, 301, dtype=BF16),
            integers(s, 0, 301, 5, dtype=INT64),
            301,
        ],
        lambda y, x, t, n: torch.nn.functional.cross_entropy(x.double(), t, reduction="none"),
        5,
        constants={"BLOCK": 512},
        tolerance=FAST,
    ),
    entry(
        "dropout",
        lambda s: [blank(N), normal(s, N), 0.25, 123, N],
        dropped,
        4,
        constants={"BLOCK": 256},
        tolerance=FUNCTION,
    ),
    entry(
        "scatter_add",
        lambda s: [torch.zeros(17), normal(s, 301), integers(s, 0, 17, 301), 301],
        scattered,
        3,
        constants={"BLOCK": 128},
        tolerance=FLOAT,
        tags="atomics",
    ),
    entry(
        "locked_add",
        lambda s: [torch.zeros(77), torch.zeros(1, dtype=INT32), normal(s, 5, 77), 77],
        lambda y, lock, x, n: x.double().sum(0),
        5,
        constants={"BLOCK": 128},
        tolerance=FLOAT,
        tags="interblock",
    ),
    entry(
        "gather_rows",
        lambda s: [blank(7, 50), normal(s, 19, 50), integers(s, 0, 19, 7), 50],
        lambda y, t, i, n: t[i.long()],
        7,
        constants={"BLOCK": 64},
    ),
    entry(
        "gather_in_tile",
        lambda s: [blank(2, 128), normal(s, 2, 128), torch.stack([permutation(s, 128)] * 2)],
        lambda y, x, i: x.gather(1, i.long()),
        2,
        constants={"N": 128},
    ),
    entry(
        "convolve",
        convolution,
        convolved,
        blocks(91, 32),
        constants={"C": 16, "F": 16, "BLOCK": 32},
        tolerance=FLOAT,
        tags="mma",
    ),
    entry(
        "transpose",
        lambda s: [blank(45, 70), normal(s, 70, 45), 70, 45],
        lambda y, x, r, c: x.T,
        (3, 2),
        constants={"BLOCK": 32},
    ),
    entry(
        "argmax_rows",
        lambda s: [blank(5, dtype=INT32), blank(5), integers(s, -50, 50, 5, 301).float(), 301],
        largest,
        5,
        constants={"BLOCK": 512},
        outputs=(0, 1),
    ),
    entry(
        "newton_root",
        lambda s: [blank(N), uniform(s, 0.1, 50, N), N],
        lambda y, x, n: x.double().sqrt(),
        4,
        constants={"BLOCK": 256},
        tolerance=FLOAT,
    ),
    entry(
        "tell",
        lambda s: [torch.arange(32, dtype=INT32) * 3],
        lambda x: x,
        1,
        constants={"BLOCK": 32, "num_warps": 1},
        printed=TOLD,
        tags="printf",
    ),
    entry(
        "tensor_descriptors",
        lambda s: [blank(37, 44), normal(s, 37, 44), 37, 44],
        lambda y, x, m, n: x * 2,
        3,
        constants={"BM": 16, "BN": 16},
    ),
    entry(
        "welford",
        lambda s: [blank(3), blank(3), normal(s, 3, 301) + 3, 301],
        lambda a, b, x, n: [x.double().mean(1), x.double().var(1, unbiased=False)],
        3,
        constants={"BLOCK": 512},
        outputs=(0, 1),
        tolerance=FLOAT,
        mutate=True,
    ),
    *(
        entry(
            "deviation",
            lambda s: [blank(16), blank(16), normal(s, 16, 33), 33],
            lambda a, b, x, n: [x.double().mean(1), x.double().var(1, unbiased=False).sqrt()],
            16,
            name=f"deviation {block}",
            constants={"BLOCK": block},
            outputs=(0, 1),
            tolerance=FLOAT,
            mutate=True,
        )
        for block in (128, 64)
    ),
    entry(
        "swish_backward",
        lambda s: [blank(N), normal(s, N), normal(s + 1, N), N],
        swish,
        4,
        constants={"BLOCK": 256},
        tolerance=FAST,
    ),
    entry(
        "rotary",
        lambda s: [normal(s, 7, 64), normal(s + 1, 7, 32), normal(s + 2, 7, 32), 7],
        turned,
        7,
        constants={"D": 64, "num_warps": 1},
        tolerance=FUNCTION,
    ),
)
