"""Honest use of memory: padded buffers returned in part, several outputs in one block, scratch."""

import torch

import assay

IDS = "V9 V15"


def reference(x):
    return x + 1, x.exp()


def inputs(make, n):
    return (make.normal(n, 10),)


op = assay.Op("blocks", reference, inputs, cases=assay.grid(n=[1, 9]))


def padded(value):
    """A value in a buffer of whole tiles of 16, the rest written too."""
    buffer = torch.empty(value.shape[0] + 7, 16)
    buffer.fill_(-5)
    buffer[: value.shape[0], : value.shape[1]] = value
    return buffer[: value.shape[0], : value.shape[1]]


@op.variant("eager/padded")
def padded_outputs(x):
    return padded(x + 1), padded(x.exp())


@op.variant("eager/halves_of_one_block")
def halves(x):
    block = torch.empty(2, *x.shape)
    torch.add(x, 1, out=block[0])
    torch.exp(x, out=block[1])
    return block[0], block[1]


@op.variant("eager/interleaved")
def interleaved(x):
    return torch.stack([x + 1, x.exp()], -1).unbind(-1)


@op.variant("eager/every_other")
def every_other(x):
    block = torch.empty(x.shape[0], 2 * x.shape[1] - 1)
    block.fill_(0)
    block[:, ::2] = x + 1
    return block[:, ::2], x.exp()


@op.variant("eager/freed_scratch")
def freed_scratch(x):
    """A block given back and handed out again is no longer fenced."""
    scratch = torch.empty_like(x)
    scratch.copy_(x)
    more = torch.cat([scratch.new_zeros(1, 10), scratch + 1])[1:]
    del scratch
    return more, torch.cat([x[:1], x]).exp()[1:]


@op.variant("eager/module", layouts="any")
def module(x):
    return torch.nn.Parameter(x + 1), x.exp()


@op.variant("python/numpy")
def numpy_arrays(x):
    import numpy

    return x.numpy() + 1, numpy.exp(x.numpy())
