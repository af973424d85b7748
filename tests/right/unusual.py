"""Right in unusual forms: without dimensions, strided, complex, in halves, half a step off."""

import torch

import assay

IDS = {
    "eager/by_a_matrix": "V3",
    "eager/no_dimension": "V24",
    "eager/not_contiguous": "O1",
    "eager/view_of_fresh": "V15",
    "eager/kept_workspace": "V17",
    "eager/in_float64": "V3",
    "eager/in_halves": "V3",
    "eager/as_a_number": "V24",
    "eager/reverse": "V7",
    "eager/real_parts": "V24",
    "eager/polar": "V24",
    "eager/one_step": "V5 V22",
    "eager/pairs": "V8",
}


def matrix(make, n):
    return (make.normal(n, n),)


transposed = assay.Op("scaled_transpose", lambda x: (2 * x).t(), matrix, cases=assay.grid(n=[24]))


@transposed.variant("eager/not_contiguous")
def not_contiguous(x):
    """Laid out as the input is; the reference's own is not."""
    return (x + x).t()


@transposed.variant("eager/by_a_matrix")
def by_a_matrix(x):
    return 2 * x.t().contiguous()


@transposed.variant("eager/view_of_fresh")
def view_of_fresh(x):
    block = torch.empty(3, *x.shape)
    block.copy_(x.t().expand_as(block))
    return block[1].mul_(2)


workspace = {}


@transposed.variant("eager/kept_workspace")
def kept_workspace(x):
    """Scratch outlives the call, and is written before it is read; the output is fresh."""
    scratch = workspace.setdefault(tuple(x.shape), torch.empty(x.shape))
    scratch.copy_(x)
    return 2 * scratch.t()


norm = assay.Op("norm", lambda x: x.square().sum().sqrt(), matrix, cases=assay.grid(n=[24]))


@norm.variant("eager/no_dimension")
def no_dimension(x):
    return torch.linalg.vector_norm(x.flatten())


@norm.variant("eager/in_float64")
def in_float64(x):
    return x.double().square().sum().sqrt().to(x.dtype)


@norm.variant("eager/in_halves")
def in_halves(x):
    top, bottom = x.flatten().tensor_split(2)
    return (top.square().sum() + bottom.square().sum()).sqrt()


@norm.launcher("eager/as_a_number")
def as_a_number(y, x):
    y.copy_(x.double().square().sum().sqrt())


def waves(make, n):
    return (torch.complex(make.normal(n), make.normal(n)),)


power = assay.Op("power", lambda z: z * z, waves, cases=assay.grid(n=[60]))


@power.variant("eager/real_parts")
def real_parts(z):
    a, b = z.real, z.imag
    return torch.complex((a + b) * (a - b), 2 * a * b)


@power.variant("eager/polar")
def polar(z):
    return torch.polar(z.abs().square(), 2 * z.angle())


def narrow(make, n):
    return (make.normal(n, dtype="bfloat16"),)


step = assay.Op(
    "sigmoid", torch.sigmoid, narrow, cases=assay.grid(n=[300]), excludes=("huge", "inf")
)


@step.variant("eager/one_step")
def one_step(x):
    """Every other result is one step of bfloat16 too large, which is rounding."""
    y = torch.sigmoid(x)
    y.view(torch.int16)[::2] += (y[::2] > 0).to(torch.int16) * (y[::2] < 0.99).to(torch.int16)
    return y


scan = assay.Op(
    "ends",
    lambda x: (x.cumsum(0), x.flip(0)),
    matrix,
    cases=assay.grid(n=[24]),
    excludes="size",  # `pairs` takes row after row in Python
)


@scan.variant("eager/reverse")
def reverse(x):
    return x.double().cumsum(0).to(x.dtype), x[torch.arange(len(x) - 1, -1, -1)]


@scan.launcher("eager/pairs")
def pairs(sums, turned, x):
    total = torch.zeros(x.shape[1:], dtype=x.dtype)
    for i, row in enumerate(x.unbind(0)):
        total = total + row
        sums[i] = total
        turned[len(x) - 1 - i] = row
