"""Numba kernels: shared memory, several dtypes, leaves that want a gradient, unusual strides."""

import torch
from numba import cuda, float32

import assay

IDS = {
    "numba/any_dtype": "I11 V24",
    "numba/any_stride": "I5",
    "numba/tree": "V3",
    "numba/atomics": "V16",
    "numba/leaf": "I11",
}


@cuda.jit
def negate(y, x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = -x[i]


def typed(make, n, dtype):
    return (make.integers(n, low=1, high=100, dtype=dtype),)


op = assay.Op(
    "negated_by_numba",
    lambda x: -x,
    typed,
    cases=assay.grid(n=[70], dtype=["float32", "int32", "int64"]),
    excludes=("size", "wide"),
)


@op.launcher("numba/any_dtype")
def any_dtype(y, x):
    negate[2, 64](y, x)


@cuda.jit
def twice(y, x):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j] + x[i, j]


def matrix(make, n):
    return (make.normal(n, 5),)


double = assay.Op("twice_by_numba", lambda x: 2 * x, matrix, cases=assay.grid(n=[20]))


@double.launcher("numba/any_stride", layouts="any")
def any_stride(y, x):
    if x.numel():
        twice[(-(-x.shape[0] // 8), 1), (8, 8)](y, x)


@cuda.jit
def tree_sum(y, x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for i in range(t, x.shape[0], 64):
        total += x[i]
    s[t] = total
    half = 32
    while half > 0:
        cuda.syncthreads()
        if t < half:
            s[t] += s[t + half]
        half //= 2
    if t == 0:
        y[0] = s[0]


@cuda.jit
def atomic_sum(y, x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.add(y, 0, x[i])


def leaf(make, n):
    return (torch.nn.Parameter(make.normal(n)),)


total = assay.Op(
    "total_of_a_leaf",
    lambda x: x.sum().reshape(1),
    leaf,
    cases=assay.grid(n=[300]),
    excludes=("size", "tiny", "denormal"),  # atomic additions flush what is subnormal
)


@total.launcher("numba/tree")
def tree(y, x):
    tree_sum[1, 64](y, x)


@total.launcher("numba/atomics")
def atomics(y, x):
    y.zero_()
    atomic_sum[5, 64](y, x)


@total.variant("numba/leaf")
def of_a_leaf(x):
    y = torch.zeros(1)
    atomic_sum[5, 64](y, x.detach())
    return y
