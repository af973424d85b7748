"""Eight activations, y = f(x) for every element, and their gradients dx = dy f'(x).

    gelu        x Phi(x), with Phi(x) = erfc(-x / sqrt(2)) / 2, the normal distribution
    gelu_tanh   x sigmoid(2 u), with u = sqrt(2 / pi) (x + 0.044715 x^3): the same as the usual
                x (1 + tanh u) / 2, but without the difference of two near numbers below zero
    relu        max(x, 0)
    tanh        tanh(x)
    sigmoid     1 / (1 + exp(-x))
    elu         x above zero, exp(x) - 1 below
    softplus    log(1 + exp(x)); x itself above 20, as in torch
    swish       x sigmoid(x)

All are finite for every finite x, where the tanh of the notes, (exp(2 u) - 1) / (exp(2 u) + 1), is
inf / inf from u = 45 on. Memory decides in float32; at 2 bytes an element it is a close run.
"""

import math

import torch
import torch.nn.functional as F

from ..launching import widened
from .activation import CASES, activation, slope

# PyTorch's own GELUs form 1 + erf or 1 + tanh, a difference of near numbers below zero: in float64,
# where they would be the truth, they lose what a kernel that avoids it keeps.
NARROWER = [case for case in CASES if case["dtype"] != "float64"]


def inputs(make, n, dtype):
    return (make.normal(n, dtype=dtype, std=2),)


def of_gelu(x):
    return F.gelu(x)


def of_gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def of_relu(x):
    return torch.relu(x)


def of_tanh(x):
    return torch.tanh(x)


def of_sigmoid(x):
    return torch.sigmoid(x)


def of_elu(x):
    return F.elu(x)


def of_softplus(x):
    return F.softplus(x)


def of_swish(x):
    return F.silu(x)


# Where x has strides, PyTorch's exact GELU loses digits for the same reason.
gelu = activation(
    "gelu", of_gelu, inputs, flops=20, cases=NARROWER, excludes=("x:expanded", "x:broadcast")
)
gelu_tanh = activation("gelu_tanh", of_gelu_tanh, inputs, flops=8, cases=NARROWER)
relu = activation("relu", of_relu, inputs, flops=1)
tanh = activation("tanh", of_tanh, inputs, flops=1)
sigmoid = activation("sigmoid", of_sigmoid, inputs, flops=4)
elu = activation("elu", of_elu, inputs, flops=3)
softplus = activation("softplus", of_softplus, inputs, flops=4)
swish = activation("swish", of_swish, inputs, flops=5)


# ---- gradients: those of tanh, sigmoid and relu are read off y, the others need x -------------


def slope_of_gelu(dy, x):
    kind, (dy, x) = x.dtype, widened(dy, x)
    density = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return (dy * (0.5 * torch.erfc(-x / math.sqrt(2)) + x * density)).to(kind)


def slope_of_gelu_tanh(dy, x):
    c, a, kind = math.sqrt(2 / math.pi), 0.044715, x.dtype
    dy, x = widened(dy, x)
    s = torch.sigmoid(2 * c * (x + a * x**3))
    # Beyond 64 the slope is 0 or 1; x^3 must not make it 0 * inf.
    v = x.clamp(-64, 64)
    return (dy * (s + v * s * (1 - s) * 2 * c * (1 + 3 * a * v * v))).to(kind)


def slope_of_relu(dy, y):
    return torch.where(y <= 0, torch.zeros_like(dy), dy)


def slope_of_tanh(dy, y):
    return dy * (1 - y * y)


def slope_of_sigmoid(dy, y):
    return dy * y * (1 - y)


def slope_of_elu(dy, x):
    return torch.where(x > 0, dy, dy * torch.exp(x))


def slope_of_softplus(dy, x):
    return torch.where(x > 20, dy, dy * torch.sigmoid(x))


def slope_of_swish(dy, x):
    kind, (dy, x) = x.dtype, widened(dy, x)
    s = torch.sigmoid(x)
    return (dy * (s * (1 + x * (1 - s)))).to(kind)


gelu_grad = slope(gelu, slope_of_gelu, "x", flops=26)
gelu_tanh_grad = slope(gelu_tanh, slope_of_gelu_tanh, "x", flops=17)
relu_grad = slope(relu, slope_of_relu, "y", flops=1)
tanh_grad = slope(tanh, slope_of_tanh, "y", flops=3)
sigmoid_grad = slope(sigmoid, slope_of_sigmoid, "y", flops=3)
elu_grad = slope(elu, slope_of_elu, "x", flops=2)
softplus_grad = slope(softplus, slope_of_softplus, "x", flops=5)
swish_grad = slope(swish, slope_of_swish, "x", flops=9)
