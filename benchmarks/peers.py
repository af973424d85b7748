"""Operators of the library on the sizes of the sweep, with the strongest peers beside them.

`assay bench benchmarks/peers.py:softmax`. Each gets `compiled/max_autotune`; `library/liger` and
`library/quack` where those have it (where they are not installed: `not run`, with the reason).
`compiled`, with Inductor's defaults, is there as ever.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config as inductor

from assay.cases import cases_of
from assay.errors import NotRun
from assay.op import Op
from assay.target import load_op, parse
from benchmarks.sweep import SWEEP

# What a process found fastest is not kept for the next one: while kernels are judged, others use
# the GPU, and a peer that was tuned then would be timed in a worse form than it can have.
inductor.autotune_local_cache = False


def swept(name: str) -> Op:
    """The operator of that name on the cases of the sweep. It is a copy: the library's stays."""
    op = copy.copy(load_op(parse(name), name))
    (part,) = (each for each in SWEEP if each.op == name)
    object.__setattr__(op, "cases", cases_of(name, part.cases))  # frozen for all others
    object.__setattr__(op, "variants", list(op.variants))
    return op


softmax, transpose = swept("softmax"), swept("transpose")
gelu, gelu_tanh = swept("gelu"), swept("gelu_tanh")
layernorm, layernorm_grad = swept("layernorm"), swept("layernorm_grad")
rmsnorm, rmsnorm_grad = swept("rmsnorm"), swept("rmsnorm_grad")
cross_entropy, cross_entropy_both = swept("cross_entropy"), swept("cross_entropy_both")
sum, square, vecadd = swept("sum"), swept("square"), swept("vecadd")
OPS = (
    *(softmax, transpose, gelu, gelu_tanh, layernorm, layernorm_grad, rmsnorm, rmsnorm_grad),
    *(cross_entropy, cross_entropy_both, sum, square, vecadd),
)


def tuned(op: Op) -> Callable[..., Any]:
    """The reference under max-autotune, compiled at the first call with sizes as they come.

    Without CUDA graphs: a graph replays fixed buffers, and its cold launch is no cheaper here.
    """

    @functools.wraps(op.reference)
    def max_autotune(*inputs: Any) -> Any:
        return compiled(*inputs)

    compiled = torch.compile(op.reference, mode="max-autotune-no-cudagraphs", dynamic=False)
    return max_autotune


for each in OPS:
    each.variant("compiled/max_autotune")(tuned(each))


def liger(module: str, name: str) -> Any:
    """A class of liger_kernel.ops. Raises NotRun where it is not installed."""
    try:
        return getattr(__import__(f"liger_kernel.ops.{module}", fromlist=[name]), name)
    except ImportError as error:
        raise NotRun(f"Liger is not here: pip install liger-kernel ({error})") from None


@gelu_tanh.variant("eager/formula")
def by_formula(x: torch.Tensor) -> torch.Tensor:
    """As it is often written, an operation at a time."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@softmax.variant("library/liger")
def liger_softmax(x: torch.Tensor) -> torch.Tensor:
    return liger("softmax", "LigerSoftmaxFunction").apply(x)


@layernorm.variant("library/liger")
def liger_layernorm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return liger("layer_norm", "LigerLayerNormFunction").apply(x, w, b, 1e-5)


@rmsnorm.variant("library/liger")
def liger_rmsnorm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return liger("rms_norm", "LigerRMSNormFunction").apply(x, w, 1e-6, 0.0, "none", False)


@cross_entropy_both.variant("library/liger")
def liger_cross_entropy(x: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Liger writes the gradient into x, so it gets a copy: that is work which it asks for."""
    given = x.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        said = liger("cross_entropy", "LigerCrossEntropyFunction").apply(
            given, target, None, -100, 0.0, 0.0, "none"
        )
        loss = said[0] if isinstance(said, tuple) else said
        (gradient,) = torch.autograd.grad(loss, given, torch.ones_like(loss))
    return loss.detach(), gradient


def quack(module: str, name: str) -> Any:
    """A function of QuACK. Raises NotRun where it is not installed, or not for this machine."""
    try:
        return getattr(__import__(f"quack.{module}", fromlist=[name]), name)
    except (ImportError, OSError) as error:
        raise NotRun(f"QuACK is not here: pip install quack-kernels ({error})") from None


@softmax.variant("library/quack")
def quack_softmax(x: torch.Tensor) -> torch.Tensor:
    return quack("softmax", "softmax")(x)


@rmsnorm.variant("library/quack")
def quack_rmsnorm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return quack("rmsnorm", "rmsnorm")(x, w, eps=1e-6)


@cross_entropy.variant("library/quack")
def quack_cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return quack("cross_entropy", "cross_entropy")(x, target, reduction="none")
