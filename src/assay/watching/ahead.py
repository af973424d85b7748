"""A kernel of nothing, so that Triton has loaded what compiling and launching take."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _copy(y, x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n), i < n)


def compiled() -> None:
    """Compiles it anew, as an edited kernel is, and runs it. Raises what Triton raises."""
    x = torch.ones(32, device="cuda")
    y = torch.empty_like(x)
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.always_compile = True
        _copy[(1,)](y, x, 32, BLOCK=32)
    torch.cuda.synchronize()
