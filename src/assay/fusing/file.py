"""The Op file and the .cu beside it, written out of a chain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import emit
from .derive import INCOMING, gradient
from .expression import Chain
from .functions import TRUTH

PYTHON = '''"""{name}: {formula}, element by element.

Written by `assay fuse`. `reference` is the chain as PyTorch runs it, {steps}; each other way
is one kernel that reads every input once and writes the result once. Edit any of it, then:

    assay check {file}      assay bench {file}      assay launches {file}
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

import assay


def reference({inputs}):
{chain}
    return {result}


def inputs(make, n, dtype):
    return tuple(make.normal(n, dtype=dtype) for _ in range({count}))


def moved(n, dtype):
    return {bytes} * n


{name} = assay.Op(
    "{name}",
    reference,
    inputs,
    shapes=dict.fromkeys({names}, "..."),  # all of one shape
    flops=lambda n: {flops} * n,
    bytes=moved,
    cases=assay.grid(n=[1, 1000, 10_007, 1 << 24], dtype=["float32", "bfloat16"]),
)


@{name}.launcher("cuda", source="{name}.cu"{knobs})
def by_cuda(k, y, {inputs}{unroll}):
    n = y.numel()
    if n:
{tile}
        kernel(grid=-(-n // tile), block=256, shared=0)(y, {inputs}, n)


@triton.jit
def widened(v):
    return v if v.dtype == tl.float64 else v.to(tl.float32)


@triton.jit
def kernel(y, {pointers}, n, BLOCK: tl.constexpr):
    # In 64 bits: past 2**31 elements a 32-bit index would wrap around.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
{loads}
{triton}
    tl.store(y + i, {result}.to(y.dtype.element_ty), mask=i < n)


@{name}.launcher("triton", knobs={{"BLOCK": [1024, 4096]}})
def by_triton(y, {inputs}, BLOCK):
    n = y.numel()
    if n:
        kernel[(triton.cdiv(n, BLOCK),)](y, {inputs}, n, BLOCK)
'''
SLOPE = """

def slope({arguments}):
    # Widened: of products that are rounded to 16 bits, differences would be noise.
    kept = dy.dtype
    wide = [v.to(torch.promote_types(kept, torch.float32)) for v in ({arguments}{comma})]
    {arguments}{comma} = wide
{chain}
    return {results}


{name}_grad = {name}.gradient(slope, saves={saves}, wrt={wrt})
"""
CUDA = """// {name}: {formula}, element by element: {steps} of PyTorch in one.
//
// Idea: what one step would write for the next to read stays in a register. include/elementwise.cuh
// moves 16 bytes at a time; here is what is computed, in float, or double where the data is.
// shapes: y and the inputs: n elements, contiguous, of one type. bytes: {count} inputs read and one
// result written an element. FLOP: {flops} an element, every function as one.
#include "elementwise.cuh"

struct Chain {{
  template <typename T, typename A>
  static __device__ __forceinline__ {gives} of({declared}) {{
{cuda}
    return {result};
  }}
}};
{kernel}"""
WIDE = """
template <typename T, int UNROLL>
__global__ void __launch_bounds__(256) fused(T* y, {pointers}, long long n) {{
  const T* const in[{count}] = {{{inputs}}};
  assay::map<256, UNROLL>(y, in, n, assay::Rounded<Chain, T>{{}});
}}
"""
PLAIN = """
// A truth a byte: one thread an element.
template <typename T>
__global__ void __launch_bounds__(256) fused(bool* y, {pointers}, long long n) {{
  const long long i = static_cast<long long>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) y[i] = Chain::of<T>({values});
}}
"""
VECTORS = """        tile = 256 * UNROLL * (16 // y.element_size())  # 16 bytes a thread at a time
        kernel = k[f"fused<{k.type(y)}, {UNROLL}>"]"""
SINGLE = """        tile = 256
        kernel = k[f"fused<{k.type(FIRST)}>"]"""


@dataclass(frozen=True)
class Written:
    """Both texts."""

    python: str
    cuda: str


def written(chain: Chain, name: str) -> Written:
    """The texts of NAME.py and NAME.cu."""
    truth, count = chain.gives == TRUTH, len(chain.inputs)
    steps = f"{len(chain.steps)} kernel{'' if len(chain.steps) == 1 else 's'}"
    common = {
        "name": name,
        "formula": chain.text,
        "inputs": ", ".join(chain.inputs),
        "count": count,
        "result": chain.result,
        "flops": len(chain.steps),
        "steps": steps,
    }
    python = PYTHON.format(
        **common,
        file=f"{name}.py",
        names=_names(tuple(chain.inputs)),
        chain=_indented(emit.torch_lines(chain.steps)),
        bytes=f"({count} * getattr(torch, dtype).itemsize + 1)"
        if truth
        else f"{count + 1} * getattr(torch, dtype).itemsize",
        knobs="" if truth else ', knobs={"UNROLL": [1, 2]}',
        unroll="" if truth else ", UNROLL",
        tile=SINGLE.replace("FIRST", chain.inputs[0]) if truth else VECTORS,
        pointers=", ".join(f"{one}_" for one in chain.inputs),
        loads=_indented(
            line
            for one in chain.inputs
            for line in (f"{one} = widened(tl.load({one}_ + i, mask=i < n))",)
        ),
        triton=_indented(emit.triton_lines(chain.steps)),
    )
    pointers = ", ".join(f"const T* {one}" for one in chain.inputs)
    cuda = CUDA.format(
        **common,
        gives="bool" if truth else "A",
        declared=", ".join(f"A {one}" for one in chain.inputs),
        cuda=_indented(emit.cuda_lines(chain.steps)),
        kernel=(PLAIN if truth else WIDE).format(
            pointers=pointers,
            count=count,
            inputs=common["inputs"],
            values=", ".join(f"assay::to_float({one}[i])" for one in chain.inputs),
        ),
    )
    return Written(python if truth else python + _slope(chain, name), cuda)


def _slope(chain: Chain, name: str) -> str:
    made, found = gradient(chain)
    wrt = [one for one in chain.inputs if found[one] != 0.0]
    if not wrt:
        return ""
    steps = emit.needed(made, [found[one] for one in wrt])
    used = {value for step in steps for value in step.takes} | {found[one] for one in wrt}
    saves = tuple(one for one in chain.inputs if one in used)
    arguments = ", ".join((INCOMING, *saves))
    return SLOPE.format(
        arguments=arguments,
        comma="" if saves else ",",
        chain=_indented(emit.torch_lines(steps)),
        results=", ".join(f"{found[one]}.to(kept)" for one in wrt),
        name=name,
        saves=_names(saves),
        wrt=_names(wrt),
    )


def _names(names: Sequence[str]) -> str:
    return "(" + "".join(f'"{name}", ' for name in names).rstrip() + ")"


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)
