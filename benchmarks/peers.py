"""Operators of the library with the strongest peers beside them.

`assay bench benchmarks/peers.py:softmax`. Each gets `compiled/max_autotune`, and `library/liger`
where Liger has it (`pip install liger-kernel`; where it is not, `not run` with the reason).
`compiled`, with Inductor's defaults, is there as ever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from assay.errors import NotRun
from assay.op import Op
from assay.ops.activations import gelu, gelu_tanh
from assay.ops.cross_entropy import cross_entropy, cross_entropy_both
from assay.ops.layernorm import layernorm
from assay.ops.rmsnorm import rmsnorm
from assay.ops.row_sum import row_sum, sum
from assay.ops.softmax import softmax
from assay.ops.square import square
from assay.ops.transpose import transpose
from assay.ops.vecadd import vecadd

OPS = (
    *(gelu, gelu_tanh, cross_entropy, cross_entropy_both, layernorm, rmsnorm),
    *(row_sum, sum, softmax, square, transpose, vecadd),
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
