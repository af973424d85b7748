"""Right on the inputs that the Op declares, wrong on hostile values, sizes or layouts."""

import torch
import torch.nn.functional as F

import assay

HOSTILE = True
EXPECT = {
    "eager/quotient_of_exps": ("wrong value", "NaN where the reference has none"),
    "eager/square_of_the_mean": ("wrong value", ""),
    "eager/product_with_the_sign": ("wrong value", "NaN where the reference has none"),
    "eager/nan_is_lost": ("wrong value", "without the reference's NaN"),
    "eager/first_is_never_the_largest": ("wrong value", ""),
    "eager/through_reciprocal_root": ("wrong value", ""),
    "eager/no_maximum": ("wrong value", "NaN where the reference has none"),
    "eager/mask_is_large": ("wrong value", ""),
    "eager/size_of_the_notes": ("crashed", ""),
    "eager/whole_blocks_only": ("not written", ""),
    "eager/clamps_the_size": ("not written", ""),
    "eager/blind_to_strides": ("wrong value", "element"),
    "eager/blind_to_expansion": ("crashed", ""),
    "eager/divides_by_the_count": ("crashed", "ZeroDivisionError"),
    "eager/index_in_8_bits": ("wrong value", ""),
    "cpp/built_for_speed": ("wrong value", ""),
}
IDS = {
    "eager/quotient_of_exps": "X04 V7",
    "eager/square_of_the_mean": "V3",
    "eager/product_with_the_sign": "V7",
    "eager/nan_is_lost": "V7 X26",
    "eager/through_reciprocal_root": "V22",
    "eager/no_maximum": "V7",
    "eager/mask_is_large": "X03",
    "eager/whole_blocks_only": "V10",
    "eager/clamps_the_size": "X06",
    "eager/blind_to_strides": "I5",
    "eager/blind_to_expansion": "I5 O5",
    "eager/divides_by_the_count": "I7",
    "eager/index_in_8_bits": "I3",
    "cpp/built_for_speed": "V22",
}
TWIN = {
    "eager/square_of_the_mean": "eager/mean_of_squares",
    "eager/through_reciprocal_root": "eager/quotient",
    "eager/whole_blocks_only": "eager/blocks",
    "eager/clamps_the_size": "eager/blocks",
    "eager/blind_to_strides": "eager/flat",
    "cpp/built_for_speed": "cpp/as_written",
}


def inputs(make, n):
    return (make.normal(n),)


gelu = assay.Op(
    "gelu_tanh",
    lambda x: F.gelu(x, approximate="tanh"),
    inputs,
    cases=assay.grid(n=[200]),
    excludes="inf",  # of which PyTorch's own makes NaN
)


@gelu.variant("eager/tanh")
def by_tanh(x):
    """Right."""
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@gelu.variant("eager/quotient_of_exps")
def quotient_of_exps(x):
    """(e^2a - 1) / (e^2a + 1) is inf / inf from x = 10.061 on."""
    e = (2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)).exp()
    return 0.5 * x * (1 + (e - 1) / (e + 1))


def rows(make, n):
    return (make.normal(4, n),)


variance = assay.Op(
    "variance", lambda x: x.var(-1, unbiased=False), rows, cases=assay.grid(n=[100])
)


@variance.variant("eager/mean_of_squares")
def mean_of_squares(x):
    """Right."""
    return (x - x.mean(-1, keepdim=True)).square().mean(-1)


@variance.variant("eager/square_of_the_mean")
def square_of_the_mean(x):
    return x.square().mean(-1) - x.mean(-1).square()


relu = assay.Op("relu", torch.relu, inputs, cases=assay.grid(n=[200]))


@relu.variant("eager/product_with_the_sign")
def product_with_the_sign(x):
    """-inf * 0 is NaN."""
    return x * (x > 0)


@relu.variant("eager/nan_is_lost")
def nan_is_lost(x):
    return torch.where(x > 0, x, 0)


largest = assay.Op("largest", lambda x: x.amax(-1), rows, cases=assay.grid(n=[100]))


@largest.variant("eager/first_is_never_the_largest")
def first_is_never_the_largest(x):
    """Begins with 0 instead of the first."""
    return x.amax(-1).maximum(torch.zeros(()))


unit = assay.Op("unit", lambda x: x / x.square().sum().sqrt(), inputs, cases=assay.grid(n=[100]))


@unit.variant("eager/quotient")
def quotient(x):
    """Right."""
    return x * (1 / x.square().sum().sqrt())


@unit.variant("eager/through_reciprocal_root")
def through_reciprocal_root(x):
    return x * (1 / (x.square().sum() + 1e-12).sqrt())


softmax = assay.Op("softmax", lambda x: torch.softmax(x, -1), rows, cases=assay.grid(n=[100]))


@softmax.variant("eager/no_maximum")
def no_maximum(x):
    e = x.exp()
    return e / e.sum(-1, keepdim=True)


@softmax.variant("eager/mask_is_large")
def mask_is_large(x):
    """What is masked still counts for e^-10."""
    return torch.softmax(x.clamp(min=-10), -1)


def reference(x):
    return 2 * x


double = assay.Op("double", reference, rows, cases=assay.grid(n=[128]))


@double.variant("eager/size_of_the_notes")
def size_of_the_notes(x):
    return 2 * x.view(4, 128)


@double.launcher("eager/blocks")
def blocks(y, x):
    """Right."""
    for start in range(0, x.shape[1], 64):
        y[:, start : start + 64] = 2 * x[:, start : start + 64]


@double.launcher("eager/whole_blocks_only")
def whole_blocks_only(y, x):
    for start in range(0, x.shape[1] // 64 * 64, 64):
        y[:, start : start + 64] = 2 * x[:, start : start + 64]


@double.launcher("eager/clamps_the_size")
def clamps_the_size(y, x):
    for start in range(0, min(x.shape[1], 1024), 64):
        y[:, start : start + 64] = 2 * x[:, start : start + 64]


@double.variant("eager/flat")
def flat(x):
    """Right: without the declaration it is given a contiguous copy."""
    return 2 * x.as_strided(x.shape, (x.shape[1], 1), x.storage_offset())


@double.variant("eager/blind_to_strides", layouts="any")
def blind_to_strides(x):
    return 2 * x.as_strided(x.shape, (x.shape[1], 1), x.storage_offset())


@double.variant("eager/blind_to_expansion", layouts="any")
def blind_to_expansion(x):
    return 2 * x.view(-1).view(x.shape)


mean = assay.Op("mean", lambda x: x.sum(-1), rows, cases=assay.grid(n=[100]))


@mean.variant("eager/divides_by_the_count")
def divides_by_the_count(x):
    return x.sum(-1) * (x.shape[1] // x.shape[1])


order = assay.Op("places", lambda x: x * torch.arange(len(x)), inputs, cases=assay.grid(n=[100]))


@order.variant("eager/index_in_8_bits")
def index_in_8_bits(x):
    return x * torch.arange(len(x)).to(torch.int8)


SIGN = r"""
#include <cmath>
extern "C" void sign(float* y, const float* x, int n) {
    for (int i = 0; i < n; i++) y[i] = std::isnan(x[i]) ? x[i] : x[i] - x[i] + (x[i] > 0);
}
"""

sign = assay.Op("positive", lambda x: x - x + (x > 0), inputs, cases=assay.grid(n=[100]))


def signed(name, flags=()):
    @sign.launcher(f"cpp/{name}", source=SIGN, flags=flags)
    def launch(k, y, x):
        k.sign(y, x, x.numel())


signed("as_written")
signed("built_for_speed", "-ffast-math")
