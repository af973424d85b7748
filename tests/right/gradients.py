"""Gradients that are right, in ways that a narrower judge would reject."""

import torch

import assay

IDS = {
    "eager/wide": "O4",
    "eager/expanded": "O5",
    "eager/in_place": "O4",
}
HOSTILE = False  # 14 Ops; layouts of gradients are tried in wrong/gradient_layouts.py


def matrix(make, m, n, dtype):
    return (make.normal(m, n, dtype=dtype, std=3),)


# Saved outputs are rounded to bfloat16: against autograd from x, perfect arithmetic on them is
# off by thousands of roundings where y (dy - s) cancels. It is judged by what it was given.
rows = assay.Op(
    "rows",
    lambda x: torch.softmax(x, -1),
    matrix,
    cases=assay.grid(m=[64], n=[257], dtype=["bfloat16", "float16", "float32"]),
)
rows_grad = rows.gradient(
    lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)), saves="y", wrt="x"
)


@rows_grad.variant("eager/wide")
def wide(dy, y):
    """In float64, rounded once."""
    a, g = y.double(), dy.double()
    return (a * (g - (g * a).sum(-1, keepdim=True))).to(y.dtype)


@rows_grad.variant("eager/expanded_sum")
def expanded_sum(dy, y):
    """Multiplied out: y dy - y s."""
    a, g = y.double(), dy.double()
    return (a * g - a * (a * g).flip(-1).sum(-1, keepdim=True)).to(y.dtype)


@rows_grad.variant("eager/by_parts")
def by_parts(dy, y):
    """The sum in pieces, the last first."""
    a, g = y.double(), dy.double()
    pieces = (a * g).split(50, -1)
    total = sum(piece.sum(-1, keepdim=True) for piece in reversed(pieces))
    return (a * (g - total)).to(y.dtype)


# A mean hands its gradient back with stride 0, and so may a variant.
mean = assay.Op(
    "mean", lambda x: x.mean(0), matrix, cases=assay.grid(m=[8], n=[16], dtype="float32")
)
mean_grad = mean.gradient(lambda dy, x: (dy / len(x)).expand(x.shape), saves="x", wrt="x")


@mean_grad.variant("eager/expanded")
def expanded(dy, x):
    return (dy * (1 / x.shape[0])).expand(x.shape)


# A loss has no dimensions, its gradient neither.
loss = assay.Op(
    "loss", lambda x: x.square().mean(), matrix, cases=assay.grid(m=[8], n=[16], dtype="float32")
)
loss_grad = loss.gradient(lambda dy, x: dy * 2 * x / x.numel(), saves="x", wrt="x")


@loss_grad.variant("eager/scaled")
def scaled(dy, x):
    return x * (2 * dy / x.numel())


# Of two outputs the indices have no gradient; the saved one is named by its number.
top = assay.Op(
    "top",
    lambda x: (x.max(-1).values, x.max(-1).indices),
    matrix,
    cases=assay.grid(m=[8], n=[16], dtype="float32"),
)
top_grad = top.gradient(
    lambda dy, x, at: torch.zeros_like(x).scatter(-1, at[:, None], dy[:, None]),
    saves=("x", "output1"),
    wrt="x",
)


@top_grad.variant("eager/compared")
def compared(dy, x, at):
    return torch.where(torch.arange(x.shape[-1]) == at[:, None], dy[:, None], 0.0)


# What the forward changes in place is saved as it is afterwards.
grown = assay.Op(
    "grown",
    lambda x: x.exp(),
    matrix,
    mutates="x",
    cases=assay.grid(m=[8], n=[16], dtype="float32"),
)
grown_grad = grown.gradient(lambda dy, y: dy * y, saves="output0", wrt="x")


@grown_grad.launcher("eager/in_place")
def in_place(dx, dy, y):
    torch.mul(dy, y, out=dx)


# Of a complex input: the conjugate of the derivative.
turn = assay.Op(
    "turn",
    lambda z: z * z,
    lambda make, n: (torch.complex(make.normal(n), make.normal(n)),),
    cases=assay.grid(n=[50]),
)
turn_grad = turn.gradient(lambda dw, z: dw * (2 * z).conj(), saves="z", wrt="z")


@turn_grad.variant("eager/conjugated_last")
def conjugated_last(dw, z):
    return (dw.conj() * (z + z)).conj().resolve_conj()
