"""The fixed sweep of the gallery: cases and kernels of each operator, most valuable first.

Sizes are those that the targets speak of, chosen before anything was run: large enough that a cold
L2 holds a small part of them, and few enough that one call of seven minutes times them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.types import Scalar

BOTH = ("float32", "bfloat16")
TORCH = ("eager", "eager/cross_entropy", "compiled", "compiled/max_autotune")
"""What torch offers for the same work."""
PEERS = (*TORCH, "eager/formula", "library/liger", "library/quack")
Values = dict[str, Scalar]


def cases(*sizes: dict[str, int], dtypes: Iterable[str] = BOTH) -> tuple[Values, ...]:
    """Every size in every dtype."""
    return tuple({**size, "dtype": dtype} for size in sizes for dtype in dtypes)


@dataclass(frozen=True)
class Part:
    """One operator of the sweep."""

    op: str
    cases: tuple[Values, ...]
    ours: tuple[str, ...]
    """Variants of ours: the rungs that exist to be read are left out."""
    target: int
    """Of the project's list of targets."""


H200 = ({"rows": 8192, "n": 8192}, {"rows": 32768, "n": 4096}, {"rows": 4096, "n": 32768})
"""Rows of softmax whose baselines were taken on an H200."""
ROWS = ({"rows": 32768, "n": 256}, {"rows": 256, "n": 131072}, {"rows": 64, "n": 393216})
FEW = {"rows": 16, "n": 256 * 256 * 64}
"""Layernorm over all of [64, 256, 256], 16 times."""
USUAL = ({"rows": 8192, "n": 4096}, {"rows": 32768, "n": 1024})
VECTORS = tuple({"n": 1 << bits} for bits in (16, 20, 22))
LONG = ({"n": 1 << 26, "dtype": "float32"}, {"n": 1 << 27, "dtype": "bfloat16"})
SHEETS = (
    {"m": 8192, "n": 8192, "dtype": "float32"},
    {"m": 16384, "n": 8192, "dtype": "bfloat16"},
)
"""What moves 512 MB in either dtype, as the copy does that is timed beside."""
HELD = ("cuda/held", "cuda/streamed")
CHAINS = ("cuda/vectorised", "triton")
SWEEP = (
    Part("softmax", cases(*H200, *ROWS),
         (*HELD, "cuda/cluster", "cuda/joined", "cuda/split", "triton"), 3),
    Part("transpose", SHEETS, ("cuda/vectorised", "triton"), 6),
    Part("gelu_tanh", (*LONG, *cases({"n": 1 << 22})), CHAINS, 1),
    Part("layernorm", cases(FEW, *USUAL), (*HELD, "cuda/split", "triton"), 4),
    Part("cross_entropy", cases({"rows": 4096, "n": 32000}, {"rows": 32768, "n": 4096}),
         ("cuda/held", "triton"), 5),
    Part("sum", cases({"n": 1 << 28}, {"n": 1 << 26}),
         ("cuda/two_stages", "cuda/atomics", "triton"), 2),
    Part("square", (*SHEETS, *cases({"m": 1024, "n": 1024})), (*CHAINS, "numba"), 1),
    Part("cross_entropy_both", cases({"rows": 4096, "n": 32000}),
         (*HELD, "triton"), 5),
    Part("vecadd", (*LONG, *cases(*VECTORS)), (*CHAINS, "numba"), 1),
    Part("layernorm_grad", cases(*USUAL), ("cuda/held", "triton"), 4),
    Part("rmsnorm", cases(*USUAL), (*HELD, "triton"), 4),
    Part("gelu", (*LONG, *cases(*VECTORS)), CHAINS, 1),
    Part("rmsnorm_grad", cases(*USUAL), ("cuda/held", "triton"), 4),
)  # fmt: skip
