"""masked_scores: y[h, i, j] = scale x[h, i, j] where key j is visible to query i, else -inf.

What attention does to its scores before softmax: exp(-inf) is 0, so a masked key gets no weight.
Here the mask is causal: of n queries and m keys the last query sees all keys, the one before all
but the last, so key j is visible if j <= i + m - n. The mask is a `__device__` function of the
indices: no tensor of it is read.
"""

import torch

from assay.inputs import dtype_of
from assay.op import Op

from ..launching import blocks


def reference(x, scale):
    queries, keys = x.shape[-2:]
    i = torch.arange(queries, device=x.device)[:, None]
    j = torch.arange(keys, device=x.device)
    return torch.where(j <= i + keys - queries, x * scale, -torch.inf)


def inputs(make, heads, queries, keys, dtype):
    return make.normal(heads, queries, keys, dtype=dtype, std=8), 0.125


masked_scores: Op = Op(
    "masked_scores",
    reference,
    inputs,
    shapes={"x": "heads queries keys"},
    flops=lambda heads, queries, keys: heads * queries * keys,
    bytes=lambda heads, queries, keys, dtype: 2 * heads * queries * keys * dtype_of(dtype).itemsize,
    cases=[
        dict(heads=1, queries=3, keys=5, dtype="float32"),
        dict(heads=2, queries=33, keys=40, dtype="float16"),
        dict(heads=2, queries=33, keys=40, dtype="float64"),
        dict(heads=3, queries=40, keys=65, dtype="float32"),
        dict(heads=3, queries=40, keys=65, dtype="bfloat16"),
        dict(heads=16, queries=1024, keys=1024, dtype="float32"),
        dict(heads=16, queries=1024, keys=1024, dtype="bfloat16"),
    ],
)


def formula(dy, scale):
    queries, keys = dy.shape[-2:]
    i = torch.arange(queries, device=dy.device)[:, None]
    j = torch.arange(keys, device=dy.device)
    return torch.where(j <= i + keys - queries, dy * scale, 0.0)


masked_scores_grad = masked_scores.gradient(formula, saves="scale", wrt="x")


@masked_scores.launcher("cuda/naive", source="masked_scores.cu")
def by_cuda_naive(k, y, x, scale):
    _, queries, keys = x.shape
    n = x.numel()
    if n:
        kernel = k[f"masked_scores_naive<{k.type(x)}>"]
        kernel(grid=blocks(n, 256), block=256, shared=0)(y, x, scale, n, queries, keys)


@masked_scores.launcher("cuda/warp_a_row", source="masked_scores.cu")
def by_cuda_warp_a_row(k, y, x, scale):
    heads, queries, keys = x.shape
    if x.numel():
        kernel = k[f"masked_scores_row<{k.type(x)}>"]
        grid = blocks(heads * queries, 8)
        kernel(grid=grid, block=256, shared=0)(y, x, scale, heads * queries, queries, keys)


@masked_scores.launcher("triton", knobs={"BLOCK": [1024]})
def by_triton(y, x, scale, BLOCK):
    from .masked_scores_triton import kernel

    _, queries, keys = x.shape
    n = x.numel()
    if n:
        kernel[(blocks(n, BLOCK),)](y, x, scale, n, queries, keys, BLOCK)
