"""The order of a sum is free (V3): forwards, backwards, permuted, in halves, one by one."""

import numpy
import torch

import assay

IDS = "V3"


def inputs(make, n, dtype):
    return (make.normal(3, n, dtype=dtype),)


op = assay.Op(
    "sums",
    lambda x: x.sum(-1),
    inputs,
    cases=assay.grid(n=[1, 257, 4096], dtype=["float32", "bfloat16"]),
    excludes="size",  # `serial` takes column after column in Python
)


@op.variant("eager/one_by_one")
def one_by_one(x):
    return x.float().cumsum(-1)[:, -1].to(x.dtype)


@op.variant("eager/backwards")
def backwards(x):
    return x.flip(-1).float().cumsum(-1)[:, -1].to(x.dtype)


@op.variant("eager/permuted")
def permuted(x):
    order = torch.randperm(x.shape[-1], generator=torch.Generator().manual_seed(3))
    return x[:, order].float().sum(-1).to(x.dtype)


@op.variant("eager/largest_first")
def largest_first(x):
    return x.float().sort(-1, descending=True).values.cumsum(-1)[:, -1].to(x.dtype)


@op.variant("python/serial")
def serial(x):
    wide = x.float().numpy()
    total = numpy.zeros(len(wide), dtype=numpy.float32)
    for column in wide.T:
        total += column
    return torch.from_numpy(total).to(x.dtype)


def product_inputs(make, n):
    return make.normal(4, n), make.normal(n, 4)


product = assay.Op(
    "long_product", lambda a, b: a @ b, product_inputs, cases=assay.grid(n=[8192]), excludes="size"
)


@product.variant("eager/split")
def split(a, b):
    return sum(x @ y for x, y in zip(a.chunk(16, 1), b.chunk(16, 0)))


@product.variant("eager/serial")
def serial_product(a, b):
    return (a[:, :, None] * b[None]).cumsum(1)[:, -1]
