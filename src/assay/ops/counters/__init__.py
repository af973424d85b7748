"""counters: every atomic of the notes, each counting x into the slot that it belongs to.

An atomic reads, changes and writes one number with nothing in between; it returns what was there.
For slot s, over all i with slot[i] = s, the rows of `counters` (int32) are

    0  atomicAdd    sum of x                    5  atomicOr    bitwise or of x
    1  atomicSub    minus the sum of x          6  atomicXor   bitwise exclusive or of x
    2  atomicMax    largest x, or -2**31        7  atomicExch  sum of x: taken out, added to, put
    3  atomicMin    smallest x, or 2**31 - 1                   back, until nobody came between
    4  atomicAnd    bitwise and of x, or -1     8  atomicCAS   sum of x, built on compare-and-swap

and those of `float_counters` the sum (atomicAdd) and the largest x, which for floating point has to
be built on atomicCAS: it is retried until nobody else came in between. Float sums depend on the
order in which threads come, by rounding.

cuda/privatised has the slots in shared memory, so that blocks do not wait for one another; then
each block adds its slots to the result.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks

BITS = 20
MOST = 1024
"""Slots that cuda/privatised has room for."""


def integers(x, slot, slots):
    wide, where = x.long(), slot.long()
    total = torch.zeros(slots, dtype=torch.int64, device=x.device).index_add(0, where, wide)

    def extreme(how, start):
        made = torch.full((slots,), start, dtype=torch.int64, device=x.device)
        return made.scatter_reduce(0, where, wide, how)

    shifts = torch.arange(32, device=x.device)
    bits = (wide[:, None] >> shifts) & 1
    ones = torch.zeros(slots, 32, dtype=torch.int64, device=x.device).index_add(0, where, bits)
    met = torch.zeros(slots, dtype=torch.int64, device=x.device).index_add(
        0, where, torch.ones_like(wide)
    )

    def number(kept):
        return (kept.long() << shifts).sum(-1)

    rows = [
        total,
        -total,
        extreme("amax", -(2**31)),
        extreme("amin", 2**31 - 1),
        number(ones == met[:, None]),
        number(ones > 0),
        number(ones % 2 == 1),
        total,
        total,
    ]
    return torch.stack(rows).to(torch.int32)


def floats(x, slot, slots):
    where = slot.long()
    total = torch.zeros(slots, dtype=x.dtype, device=x.device).index_add(0, where, x)
    largest = torch.full((slots,), -torch.inf, dtype=x.dtype, device=x.device)
    return torch.stack([total, largest.scatter_reduce(0, where, x, "amax")])


def integer_inputs(make, n, slots):
    return (
        make.integers(n, low=-(2**BITS), high=2**BITS, dtype="int32"),
        make.integers(n, low=0, high=slots, dtype="int32"),
        slots,
    )


def float_inputs(make, n, slots, dtype):
    return make.normal(n, dtype=dtype), make.integers(n, low=0, high=slots, dtype="int32"), slots


counters: Op = Op(
    "counters",
    integers,
    integer_inputs,
    shapes={"x": "n", "slot": "n"},
    flops=lambda n: 9 * n,
    bytes=lambda n, slots: 8 * n + 36 * slots,
    deterministic=True,
    cases=[dict(n=1000, slots=7), dict(n=10_007, slots=100), dict(n=1 << 20, slots=64)],
)
float_counters: Op = Op(
    "float_counters",
    floats,
    float_inputs,
    shapes={"x": "n", "slot": "n"},
    flops=lambda n: 2 * n,
    bytes=lambda n, slots, dtype: n * (4 + dtype_of(dtype).itemsize),
    # Comparisons lose a NaN; whether a sum of huge values overflows hangs on its order.
    # atomicAdd of floats in global memory takes what is below the normal numbers for 0 (PTX).
    excludes=("x:nan", "x:huge", "x:tiny", "x:denormal"),
    cases=[
        dict(n=1000, slots=7, dtype="float32"),
        dict(n=1000, slots=7, dtype="float64"),
        dict(n=10_007, slots=100, dtype="float32"),
        dict(n=1 << 20, slots=64, dtype="float32"),
    ],
)


def room(slots):
    return slots <= MOST or f"a block has room for {MOST:,} slots of each kind"


def start(k, y, slots):
    """What each row of counters begins with."""
    if slots:
        k["counters_start"](grid=blocks(slots, 256), block=256, shared=0)(y, slots)


def start_floats(y):
    """The same of sums and of largest values."""
    y[0].zero_()
    y[1].fill_(-torch.inf)


def shared_grid(n):
    """Few blocks that count much each: every one merges all its slots at the end."""
    return min(264, blocks(n, 4096))


@counters.launcher("cuda/global", source="counters.cu")
def by_cuda_global(k, y, x, slot, slots):
    n = x.numel()
    start(k, y, slots)
    if n:
        k["counters_global"](grid=blocks(n, 256), block=256, shared=0)(y, x, slot, n, slots)


@counters.launcher("cuda/privatised", source="counters.cu", when=room)
def by_cuda_privatised(k, y, x, slot, slots):
    n = x.numel()
    start(k, y, slots)
    if n:
        kernel = k["counters_privatised"]
        kernel(grid=shared_grid(n), block=256, shared=36 * slots)(y, x, slot, n, slots)


@float_counters.launcher("cuda/global", source="counters.cu")
def floats_by_cuda(k, y, x, slot, slots):
    n = x.numel()
    start_floats(y)
    if n:
        kernel = k[f"float_counters_global<{k.type(x)}>"]
        kernel(grid=blocks(n, 256), block=256, shared=0)(y, x, slot, n, slots)


@float_counters.launcher("cuda/privatised", source="counters.cu", when=room)
def floats_by_cuda_privatised(k, y, x, slot, slots):
    n = x.numel()
    start_floats(y)
    if n:
        kernel = k[f"float_counters_privatised<{k.type(x)}>"]
        shared = 2 * slots * x.element_size()
        kernel(grid=shared_grid(n), block=256, shared=shared)(y, x, slot, n, slots)


@float_counters.launcher("triton", knobs={"BLOCK": [1024]})
def floats_by_triton(y, x, slot, slots, BLOCK):
    from .counters_triton import float_kernel

    n = x.numel()
    start_floats(y)
    if n:
        float_kernel[(blocks(n, BLOCK),)](y, x, slot, n, slots, BLOCK)


@counters.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, x, slot, slots, BLOCK):
    from .counters_triton import kernel

    n = x.numel()
    for row, start in enumerate((0, 0, -(2**31), 2**31 - 1, -1, 0, 0, 0, 0)):
        y[row].fill_(start)
    if n:
        kernel[(blocks(n, BLOCK),)](y, x, slot, n, slots, BLOCK)
