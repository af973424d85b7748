"""The fixed sweep of the gallery: cases and kernels of each operator, most valuable first.

Sizes were chosen before anything was run. Operators that a target speaks of have its sizes: large
enough that a cold L2 holds a small part of them. All others, and every gradient that has kernels
of its own, have one size that the L2 cache holds and one that is larger, in float32; the larger in
bfloat16 too, where there is one. The larger moves 256 MiB or more in float32, so that it can be set
beside a copy, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.types import Scalar

BOTH = ("float32", "bfloat16")
TORCH = (
    *("eager", "eager/cross_entropy", "compiled", "compiled/max_autotune"),
    *("eager/batch_norm", "eager/instance_norm", "eager/local_response_norm", "eager/bincount"),
)
"""What torch offers for the same work."""
LIBRARIES = ("library/liger", "library/quack", "extension/cub")
PEERS = (*TORCH, "eager/formula", *LIBRARIES)
CASTS = {("cross_entropy", "library/quack"), ("cross_entropy_both", "library/quack")}
"""Peers whose loss is float32 whatever x is: in other dtypes a kernel of torch's rounds it, for the
answer to have the dtype of this operator's. `standing.py` says so beside their time."""
Values = dict[str, Scalar]


def cases(*sizes: Mapping[str, int], dtypes: Iterable[str] = BOTH) -> tuple[Values, ...]:
    """Every size in every dtype."""
    return tuple({**size, "dtype": dtype} for size in sizes for dtype in dtypes)


@dataclass(frozen=True)
class Part:
    """One operator of the sweep."""

    op: str
    cases: tuple[Values, ...]
    ours: tuple[str, ...]
    """Variants of ours: the rungs that exist to be read are left out."""
    group: str = "targets"
    """What is judged beside one another: `--only` takes it for all of its operators."""

    @property
    def asked(self) -> int:
        """Kernels of ours times cases."""
        return len(self.cases) * len(self.ours)


H200 = ({"rows": 8192, "n": 8192}, {"rows": 32768, "n": 4096}, {"rows": 4096, "n": 32768})
"""Rows of softmax whose baselines were taken on an H200."""
ROWS = ({"rows": 32768, "n": 256}, {"rows": 256, "n": 131072}, {"rows": 64, "n": 393216})
FEW = {"rows": 16, "n": 256 * 256 * 64}
"""Layernorm over all of [64, 256, 256], 16 times."""
USUAL = ({"rows": 8192, "n": 4096}, {"rows": 32768, "n": 1024})
CACHED = {"rows": 1024, "n": 1024}
"""Rows that the L2 cache holds. No target speaks of them, but pictures and losses do."""
VECTORS = tuple({"n": 1 << bits} for bits in (16, 20, 22))
LONG = ({"n": 1 << 26, "dtype": "float32"}, {"n": 1 << 27, "dtype": "bfloat16"})
SHEETS = (
    {"m": 8192, "n": 8192, "dtype": "float32"},
    {"m": 16384, "n": 8192, "dtype": "bfloat16"},
)
"""What moves 512 MB in either dtype, as the copy does that is timed beside."""
HELD = ("cuda/held", "cuda/streamed")
CHAINS = ("cuda/vectorised", "triton")
WALKED = ("triton", "triton/held")
OF_TARGETS = (
    Part("softmax", cases(*H200, *ROWS),
         (*HELD, "cuda/cluster", "cuda/joined", "cuda/split", *WALKED, "numba")),
    Part("transpose", (*SHEETS, *cases({"m": 1024, "n": 1024})), (*CHAINS, "numba")),
    Part("gelu_tanh", (*LONG, *cases({"n": 1 << 22})), CHAINS),
    Part("layernorm", cases(FEW, *USUAL, CACHED), (*HELD, "cuda/split", *WALKED)),
    Part("cross_entropy", cases({"rows": 4096, "n": 32000}, {"rows": 32768, "n": 4096}, CACHED),
         (*HELD, *WALKED)),
    Part("sum", cases({"n": 1 << 28}, {"n": 1 << 26}, {"n": 1 << 20}),
         ("cuda/two_stages", "cuda/atomics", "triton", "numba")),
    Part("square", (*SHEETS, *cases({"m": 1024, "n": 1024})), (*CHAINS, "numba", "extension")),
    Part("cross_entropy_both", cases({"rows": 4096, "n": 32000}, CACHED), (*HELD, *WALKED)),
    Part("vecadd", (*LONG, *cases(*VECTORS)), (*CHAINS, "numba")),
    Part("layernorm_grad", cases(*USUAL, CACHED), ("cuda/held", *WALKED)),
    Part("rmsnorm", cases(*USUAL, CACHED), (*HELD, *WALKED)),
    Part("gelu", (*LONG, *cases(*VECTORS)), CHAINS),
    Part("rmsnorm_grad", cases(*USUAL, CACHED), ("cuda/held", *WALKED)),
)  # fmt: skip


def two(
    op: str,
    group: str,
    sizes: Sequence[Mapping[str, Scalar]],
    ours: tuple[str, ...],
    dtypes: tuple[str, ...] = BOTH,
) -> Part:
    """Both sizes in the first dtype, the larger in the others; without dtypes there is none."""
    made: list[Values] = [{**size, **({"dtype": dtypes[0]} if dtypes else {})} for size in sizes]
    more: list[Values] = [{**sizes[-1], "dtype": name} for name in dtypes[1:]]
    return Part(op, (*made, *more), ours, group)


def activations() -> tuple[Part, ...]:
    """Those that no target speaks of; then all gradients."""
    sizes = {"n": 1 << 20}, {"n": 1 << 25}
    forward = ("relu", "tanh", "sigmoid", "elu", "softplus", "swish")
    names = (*forward, *(f"{name}_grad" for name in ("gelu", "gelu_tanh", *forward)))
    return tuple(two(name, "activations", sizes, CHAINS) for name in names)


def elements() -> tuple[Part, ...]:
    """Element by element, counting, and products of small matrices."""
    vectors, quarters = ({"n": 1 << 20}, {"n": 1 << 25}), ({"n": 1 << 20}, {"n": 1 << 24})
    terms = {"n": 1 << 20, "terms": 3}, {"n": 1 << 25, "terms": 3}
    sheets = {"m": 1024, "n": 1024}, {"m": 8192, "n": 4096}
    boxes = {"d": 64, "h": 128, "w": 128}, {"d": 256, "h": 256, "w": 512}
    block = {"bx": 32, "by": 4, "bz": 2}
    told = {"d": 16, "h": 64, "w": 256, **block}, {"d": 64, "h": 256, "w": 512, **block}
    halves = {"rows": 1024, "p": 512, "q": 512}, {"rows": 8192, "p": 2048, "q": 2048}
    scores = (
        {"heads": 16, "queries": 256, "keys": 256},
        {"heads": 32, "queries": 1024, "keys": 1024},
    )
    numbers = {"n": 1 << 20}, {"n": 1 << 26}
    dice = {"n": 1 << 20, "bins": 256}, {"n": 1 << 25, "bins": 256}
    slots = {"n": 1 << 20, "slots": 64}, {"n": 1 << 23, "slots": 64}
    matrices = [{"batch": b, "m": n, "n": n, "k": n} for b, n in ((64, 128), (512, 256))]
    return (
        two("polynomial", "elements", terms, (*CHAINS, "numba", "extension")),
        two("polynomial_grad", "elements", terms, (*CHAINS, "extension")),
        two("square_grad", "elements", sheets, (*CHAINS, "extension")),
        two("scale_bias", "elements", quarters, CHAINS),
        two("sigmoid_scale_bias", "elements", quarters, CHAINS),
        two("vecadd3d", "elements", boxes, ("cuda/flat", "cuda/grid_3d", "triton")),
        two("concat", "elements", halves, CHAINS),
        two("shift_left", "elements", vectors, ("cuda/vectorised", "cuda/blocks", "triton")),
        two("masked_scores", "elements", scores, ("cuda/warp_a_row", "triton")),
        two("hello", "elements", told, ("cuda", "triton", "numba"), ()),
        two("philox", "elements", numbers, ("cuda", "triton"), ()),
        # 128 MB read; and 64, because eager spreads each integer over 32 of 64 bits: twice the L2
        # and just more than it.
        two("histogram", "elements", dice, ("cuda/global", "cuda/privatised", "triton", "numba"),
            ()),
        two("counters", "elements", slots, ("cuda/privatised", "triton"), ()),
        two("float_counters", "elements", slots, ("cuda/global", "cuda/privatised", "triton"),
            ("float32",)),
        two("bmm", "elements", matrices, ("cuda/tiled", "cuda/tensor", "triton")),
        two("bmm_grad", "elements", matrices, ("cuda/tiled", "cuda/tensor", "triton")),
    )  # fmt: skip


def reductions() -> tuple[Part, ...]:
    """Over rows, planes, channels and windows."""
    rows = CACHED, {"rows": 8192, "n": 4096}
    sums = CACHED, {"rows": 16384, "n": 4096}
    planes = [{"b": b, "c": c, "h": n, "w": n} for b, c, n in ((32, 32, 32), (128, 64, 64))]
    wide = [{"b": b, "c": c, "h": n, "w": n, "k": 2} for b, c, n in ((16, 16, 64), (256, 64, 64))]
    sharp: Values = {"size": 5, "alpha": 1.0, "beta": 0.75, "k": 2.0}
    channels = [{"b": b, "c": 96, "h": n, "w": n, **sharp} for b, n in ((16, 27), (128, 54))]
    contrast: Values = {"size": 5, "least": 0.01}
    near = [{**size, **contrast} for size in planes]
    return (
        two("row_sum", "reductions", sums, ("cuda/held", "cuda/block_a_row", "triton", "numba")),
        two("log_softmax", "reductions", rows, ("cuda/held", *WALKED)),
        two("log_softmax_grad", "reductions", rows, ("cuda/held", "triton")),
        two("softmax_grad", "reductions", rows, ("cuda/held", "triton")),
        two("cross_entropy_grad", "reductions", rows, ("cuda/held", *WALKED)),
        two("batchnorm2d", "reductions", planes, ("cuda/split", "triton")),
        two("batchnorm2d_grad", "reductions", planes, ("cuda/split", "triton")),
        two("instancenorm2d", "reductions", planes, ("cuda", "triton")),
        two("instancenorm2d_grad", "reductions", planes, ("cuda", "triton")),
        two("lrn", "reductions", channels, ("cuda/walked", "triton")),
        two("lrn_grad", "reductions", channels, ("cuda", "triton")),
        two("lcn", "reductions", near, ("cuda/tiled", "cuda/two_passes", "triton")),
        two("maxpool2d", "reductions", wide, CHAINS),
        two("maxpool2d_grad", "reductions", wide, ("cuda", "triton")),
        two("avgpool2d", "reductions", wide, CHAINS),
        two("avgpool2d_grad", "reductions", wide, ("cuda", "triton")),
    )


SWEEP = (*OF_TARGETS, *activations(), *elements(), *reductions())
GROUPS = tuple(dict.fromkeys(part.group for part in SWEEP))
"""As they are run: each is judged as a whole, and then timed."""


def chosen(only: str) -> list[Part]:
    """The parts that names of operators and groups mean, by comma; all of them if it is empty.

    Raises ValueError for a name that is none.
    """
    names = [name for name in only.split(",") if name]
    known = {*GROUPS, *(part.op for part in SWEEP)}
    for name in names:
        if name not in known:
            raise ValueError(f"{name}: no operator of the sweep, nor one of {', '.join(GROUPS)}")
    return [part for part in SWEEP if not names or part.op in names or part.group in names]
