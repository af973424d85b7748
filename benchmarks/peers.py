"""Operators of the library on the sizes of the sweep, with the strongest peers beside them.

`assay bench benchmarks/peers.py:softmax`. Each gets `compiled/max_autotune`; `library/liger` and
`library/quack` where those have it (where they are not installed, or have nothing for it: `not
run`, with the reason), and `sum` the reduction of CUB. `compiled`, with Inductor's defaults, is
there as ever. Signatures are those of Liger 0.8.5 and QuACK 0.6.5.
"""

from __future__ import annotations

import copy
import functools
import math
import os
from collections.abc import Callable
from typing import Any

import torch

from assay.cases import cases_of
from assay.errors import NotRun
from assay.op import Op
from assay.target import load_op, parse
from benchmarks.sweep import OF_TARGETS, SWEEP

COMPILES = "TORCHINDUCTOR_COMPILE_THREADS"
"""Set in processes that compile, and timing ones. In all others Inductor is not imported: that
takes seconds, of every kernel that is judged."""


def untold() -> None:
    """What a process found fastest is not kept for the next one: while kernels are judged, others
    use the GPU, and a peer that was tuned then would be timed in a worse form than it can have."""
    os.environ.setdefault(COMPILES, "1")
    import torch._inductor.config as inductor

    inductor.autotune_local_cache = False


if COMPILES in os.environ:
    untold()


def swept(name: str) -> Op:
    """The operator of that name on the cases of the sweep. It is a copy: the library's stays."""
    op = copy.copy(load_op(parse(name), name))
    (part,) = (each for each in SWEEP if each.op == name)
    object.__setattr__(op, "cases", cases_of(name, part.cases))  # frozen for all others
    object.__setattr__(op, "variants", list(op.variants))
    return op


OPS = {part.op: swept(part.op) for part in SWEEP}
globals().update(OPS)  # `peers.py:softmax`


@functools.cache
def compiled(function: Callable[..., Any], mode: str | None = None) -> Callable[..., Any]:
    """The function under torch.compile, for sizes as they come."""
    untold()
    return torch.compile(function, mode=mode, dynamic=False)


def tuned(op: Op) -> Callable[..., Any]:
    """The reference under max-autotune, compiled at the first call.

    Without CUDA graphs: a graph replays fixed buffers, and its cold launch is no cheaper here.
    """

    @functools.wraps(op.reference)
    def max_autotune(*inputs: Any) -> Any:
        return compiled(op.reference, "max-autotune-no-cudagraphs")(*inputs)

    # So that it is known for the reference, which returns what its inputs must become.
    vars(max_autotune)["_torchdynamo_orig_callable"] = op.reference
    return max_autotune


for each in OPS.values():
    each.variant("compiled/max_autotune")(tuned(each))


@OPS["gelu_tanh"].variant("eager/formula")
def by_formula(x: torch.Tensor) -> torch.Tensor:
    """As it is often written, an operation at a time."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@OPS["sum"].launcher("extension/cub", source="cub_sum.cpp")
def cub_sum(k: Any, y: torch.Tensor, x: torch.Tensor) -> None:
    if not torch.cuda.is_available():
        raise NotRun("CUB's reduction runs on a GPU")
    k.cub_sum(y, x)


# ---- statistics that a library's forward keeps for its backward --------------------------------
# The gradients of this library are given x alone, so a peer has to work them out, by one kernel of
# Inductor's that reads x once. It is part of its time: rule 5, the same work.


def layernorm_statistics(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = torch.var_mean(x.float(), -1, correction=0)
    return mean, torch.rsqrt(variance + 1e-5)


def rmsnorm_statistics(x: torch.Tensor) -> torch.Tensor:
    return torch.rsqrt(x.float().square().mean(-1) + 1e-6)


def log_of_sum(x: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(x.float(), -1)


# ---- Liger -------------------------------------------------------------------------------------

WIDEST = 65_536


def fits_liger(n: int) -> bool | str:
    """Liger takes a row as one block of Triton's."""
    return n <= WIDEST or f"Liger takes rows of at most {WIDEST:,} elements"


def found(package: str, module: str, name: str, pip: str) -> Any:
    """What a library's module has of that name. Raises NotRun where it is not there."""
    try:
        return getattr(__import__(f"{package}.{module}", fromlist=[name]), name)
    except AttributeError:
        raise NotRun(f"the {pip} that is installed has no {module}.{name}") from None
    except (ImportError, OSError) as error:
        raise NotRun(f"not here: pip install {pip} ({error})") from None


def liger(module: str, name: str) -> Any:
    return found("liger_kernel.ops", module, name, "liger-kernel")


@OPS["softmax"].variant("library/liger", when=fits_liger)
def liger_softmax(x: torch.Tensor) -> torch.Tensor:
    return liger("softmax", "LigerSoftmaxFunction").apply(x)


@OPS["softmax_grad"].variant("library/liger", when=fits_liger)
def liger_softmax_grad(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    block, warps = liger("utils", "calculate_settings")(y.shape[-1])
    return liger("softmax", "_softmax_backward")(dy, y, block, warps, False)


@OPS["layernorm"].variant("library/liger", when=fits_liger)
def liger_layernorm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return liger("layer_norm", "LigerLayerNormFunction").apply(x, w, b, 1e-5)


@OPS["layernorm_grad"].variant("library/liger", when=fits_liger)
def liger_layernorm_grad(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
    """Of the bias, for which w stands here, it looks at the dtype alone."""
    back = liger("layer_norm", "layer_norm_backward")
    return back(dy, x, w, w, *compiled(layernorm_statistics)(x))


@OPS["rmsnorm"].variant("library/liger", when=fits_liger)
def liger_rmsnorm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return liger("rms_norm", "LigerRMSNormFunction").apply(x, w, 1e-6, 0.0, "none", False)


@OPS["rmsnorm_grad"].variant("library/liger", when=fits_liger)
def liger_rmsnorm_grad(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
    """As Gemma computes it, in float32 throughout; not in place, for dy must stay."""
    block, warps = liger("utils", "calculate_settings")(x.shape[-1])
    mode = liger("rms_norm", "_str_to_casting_mode")["gemma"]
    back = liger("rms_norm", "rms_norm_backward")
    rstd = compiled(rmsnorm_statistics)(x)
    return back(dy, x, w, rstd, 0.0, mode, block, warps, False, None)


def liger_losses(x: torch.Tensor, target: torch.Tensor, gradient: bool) -> torch.Tensor:
    """The losses, and the gradient in place of x where it is asked for.

    Liger's kernel as its `cross_entropy_forward` launches it on Hopper, without what that counts
    and checks before: each of those is copied to the host, which makes a call wait for the host.
    Here every target lies in range, and none is ignored.
    """
    kernel = liger("cross_entropy", "liger_cross_entropy_kernel")
    (rows, n), power = x.shape, 1 << (x.shape[1] - 1).bit_length()
    loss = torch.empty(rows, dtype=x.dtype, device=x.device)
    kernel[(rows,)](
        X_ptr=x,
        X_stride=x.stride(0),
        Y_ptr=target,
        Y_stride=1,
        weight_ptr=None,
        loss_ptr=loss,
        z_loss_ptr=None,
        loss_stride=1,
        token_accuracy_ptr=None,
        token_accuracy_stride=0,
        predicted_tokens_ptr=None,
        predicted_tokens_stride=0,
        n_cols=n,
        n_non_ignore=rows,
        sum_non_ignore_weight=rows,
        weight_sum=0.0,
        ignore_index=-100,
        lse_square_scale=0.0,
        label_smoothing=0.0,
        reduction="none",
        softcap=None,
        RETURN_Z_LOSS=False,
        RETURN_TOKEN_ACCURACY=False,
        RETURN_PREDICTED_TOKENS=False,
        BLOCK_SIZE=min(liger("cross_entropy", "MAX_FUSED_SIZE"), power),
        HAS_WEIGHT=False,
        HAS_SOFTCAPPING=False,
        HAS_GRADIENTS=gradient,
        num_warps=32,
    )
    return loss


@OPS["cross_entropy"].variant("library/liger")
def liger_cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return liger_losses(x, target, False)


@OPS["cross_entropy_both"].variant("library/liger")
def liger_cross_entropy_both(x: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Liger writes the gradient into x, so it gets a copy: that is work which it asks for."""
    given = x.clone()
    return liger_losses(given, target, True), given


# ---- QuACK -------------------------------------------------------------------------------------

MOST_HELD = 1 << 19


def fits_quack(n: int) -> bool | str:
    """QuACK keeps a row in the shared memory of a cluster."""
    return n <= MOST_HELD or f"QuACK holds a row in 16 blocks: {MOST_HELD:,} elements at most"


def quack(module: str, name: str) -> Any:
    return found("quack", module, name, "quack-kernels")


@OPS["softmax"].variant("library/quack", when=fits_quack)
def quack_softmax(x: torch.Tensor) -> torch.Tensor:
    return quack("softmax", "softmax")(x)


@OPS["softmax_grad"].variant("library/quack", when=fits_quack)
def quack_softmax_grad(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return quack("softmax", "softmax_bwd")(dy, y)


@OPS["layernorm"].variant("library/quack", when=fits_quack)
def quack_layernorm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`layernorm_fwd` wants weights in float32; the operator that it calls takes them in x's dtype
    too, and so nothing has to be cast."""
    y = torch.empty_like(x)
    quack("rmsnorm", "_rmsnorm_fwd")(x, w, y, b, None, None, None, None, 1e-5, True)
    return y


@OPS["layernorm_grad"].variant("library/quack", when=fits_quack)
def quack_layernorm_grad(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
    back = quack("rmsnorm", "layernorm_bwd")
    mean, rstd = compiled(layernorm_statistics)(x)
    return back(x, w, dy, rstd, mean)


@OPS["rmsnorm"].variant("library/quack", when=fits_quack)
def quack_rmsnorm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return quack("rmsnorm", "rmsnorm")(x, w, eps=1e-6)


@OPS["rmsnorm_grad"].variant("library/quack", when=fits_quack)
def quack_rmsnorm_grad(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
    back = quack("rmsnorm", "rmsnorm_bwd")
    return back(x, w, dy, compiled(rmsnorm_statistics)(x))[:2]


@OPS["cross_entropy"].variant("library/quack", when=fits_quack)
def quack_cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Its loss is float32: see CASTS of sweep.py."""
    return quack("cross_entropy", "cross_entropy_fwd")(x, target).to(x.dtype)


@OPS["cross_entropy_both"].variant("library/quack", when=fits_quack)
def quack_cross_entropy_both(x: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Both by one kernel; its loss is float32: see CASTS of sweep.py."""
    loss, dx = quack("cross_entropy", "cross_entropy_fwd")(x, target, return_dx=True)
    return loss.to(x.dtype), dx


@OPS["cross_entropy_grad"].variant("library/quack", when=fits_quack)
def quack_cross_entropy_grad(
    dloss: torch.Tensor, x: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    back = quack("cross_entropy", "cross_entropy_bwd")
    return back(x, target, dloss.float(), compiled(log_of_sum)(x))


# ---- what they have not ------------------------------------------------------------------------

INSTEAD = {
    "gelu": "GELU is there only times another tensor (Liger), or behind a product (QuACK)",
    "cross_entropy_grad": "its gradient is written by its forward, in place of x",
}
INSTEAD["gelu_tanh"] = INSTEAD["gelu"]


def nothing(op: Op, library: str) -> None:
    """A variant that is not run, and says why."""
    name = {"library/liger": "Liger", "library/quack": "QuACK"}[library]
    why = INSTEAD.get(op.name, f"{name} has no {op.name}")

    def missing(*inputs: Any) -> Any:
        raise NotRun(why)

    op.variant(library, when=lambda: why)(missing)


def complete() -> None:
    """Every operator that a target speaks of has a row of each library."""
    for name in dict.fromkeys([*(part.op for part in OF_TARGETS), "cross_entropy_grad"]):
        known = {variant.name for variant in OPS[name].variants}
        for library in ("library/liger", "library/quack"):
            if library not in known:
                nothing(OPS[name], library)


complete()
