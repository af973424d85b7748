"""GELU (by tanh), softmax and a product by JAX and XLA, judged and timed beside PyTorch.

    assay check examples/jax_rung.py        pip install jax, else JAX's rows say `not run`
    python examples/jax_rung.py softmax     what XLA makes of it: optimised HLO, with its fusions

Tensors pass without a copy, by DLPack. On a CPU XLA takes subnormal numbers for 0, and its rows on
`tiny` and `denormal` inputs are wrong for it. On a GPU JAX launches on a stream of its own, which
events on torch's do not see: there its answers are judged, and no time is given for it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

import assay
from assay.errors import NotRun

SIZES = assay.grid(m=[64], n=[513]) + assay.grid(m=[1024], n=[1024])

gelu = assay.Op(
    "gelu",
    lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    lambda make, m, n: (make.normal(m, n),),
    cases=SIZES,
    bytes=lambda m, n: 8 * m * n,
)
softmax = assay.Op(
    "softmax",
    lambda x: torch.softmax(x, -1),
    lambda make, m, n: (make.normal(m, n),),
    cases=SIZES,
    bytes=lambda m, n: 8 * m * n,
)
matmul = assay.Op(
    "matmul",
    torch.matmul,
    lambda make, m, n: (make.normal(m, n), make.normal(n, m)),
    cases=SIZES,
    bytes=lambda m, n: 4 * (2 * m * n + m * m),
    flops=lambda m, n: 2 * m * m * n,
)


def jax() -> Any:
    """The package. Raises NotRun where it is not installed."""
    try:
        import jax
    except ImportError as error:
        raise NotRun(f"JAX is not here: pip install jax ({error})") from None
    return jax


def written(name: str) -> Callable[..., Any]:
    """The function in JAX; a product in full float32, as PyTorch's is by default."""
    j = jax()
    return {
        "gelu": functools.partial(j.nn.gelu, approximate=True),
        "softmax": j.nn.softmax,
        "matmul": functools.partial(j.numpy.matmul, precision="highest"),
    }[name]


@functools.cache
def compiled(name: str) -> Callable[..., Any]:
    """The same, compiled by XLA for each shape it meets."""
    made: Callable[..., Any] = jax().jit(written(name))
    return made


def run(name: str, *inputs: torch.Tensor) -> torch.Tensor:
    """Through DLPack and back; it ends when JAX has done it."""
    j = jax()
    made = compiled(name)(*(j.dlpack.from_dlpack(x.contiguous()) for x in inputs))
    return torch.from_dlpack(made.block_until_ready())


for op in (gelu, softmax, matmul):
    op.variant("eager/jax")(functools.partial(run, op.name))


def hlo(name: str) -> str:
    """What XLA makes of the function on 1024 x 1024 float32, after its optimisations."""
    j = jax()
    x = j.ShapeDtypeStruct((1024, 1024), "float32")
    text: str = (
        j.jit(written(name)).lower(*[x] * (2 if name == "matmul" else 1)).compile().as_text()
    )
    return text


if __name__ == "__main__":
    known = [op.name for op in (gelu, softmax, matmul)]
    if len(sys.argv) != 2 or sys.argv[1] not in known:
        sys.exit(f"python {sys.argv[0]} {' | '.join(known)}")
    print(hlo(sys.argv[1]))
