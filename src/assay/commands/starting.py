"""`assay new NAME`: a starting file that already passes, in the way asked for."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from ..errors import AssayError

HEAD = '''"""{title}.   assay check {file}   ·   assay bench {file}"""

import torch
{imports}
import assay


def reference(x):  # what it means; it is run in float64
    return x * torch.sigmoid(x)


def inputs(make, n, dtype):  # what feeds it
    return (make.normal(n, dtype=dtype),)


{name} = assay.Op(
    "{name}",
    reference,
    inputs,
    flops=lambda n: 4 * n,
    cases=assay.grid(n=[1, 1000, 1 << 16], dtype=["float32"]),
)
'''

TRITON = """

@triton.jit
def kernel(y, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n, other=0).to(tl.float32)
    tl.store(y + i, v * tl.sigmoid(v), i < n)


@{name}.launcher("triton", knobs={{"BLOCK": [1024, 256]}})
def launch(y, x, BLOCK):
    kernel[(triton.cdiv(x.numel(), BLOCK),)](y, x, x.numel(), BLOCK)
"""

CUDA = """

@{name}.launcher("cuda", source="{name}.cu", knobs={{"BLOCK": [256, 1024]}})
def launch(k, y, x, BLOCK):
    n = x.numel()
    grid = (n + BLOCK - 1) // BLOCK
    k[f"{name}_kernel<{{k.type(x)}}>"](grid=grid, block=BLOCK)(y, x, n)
"""

CUDA_SOURCE = """// y[i] = x[i] * sigmoid(x[i]) for i < n; one thread an element.
// Bytes: 2 n sizeof(T). FLOPs: about 4 n. Shapes: x and y hold n elements, contiguous.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
__global__ void {name}_kernel(T* y, const T* x, long long n) {{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = static_cast<float>(x[i]);
    y[i] = static_cast<T>(v / (1.0f + expf(-v)));
}}
"""

CPP = """

@{name}.launcher("cpp", source="{name}.cpp")
def launch(k, y, x):
    k.{name}_float32(y, x, x.numel())
"""

CPP_SOURCE = """// y[i] = x[i] * sigmoid(x[i]) for i < n.
// Bytes: 8 n. FLOPs: about 4 n. Shapes: n float32 each, contiguous.
#include <cmath>
#include <cstdint>

extern "C" void {name}_float32(float* y, const float* x, int64_t n) {{
#pragma omp parallel for if (n > 100000)
    for (int64_t i = 0; i < n; i++) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}}
"""

BODIES = {"triton": (TRITON, ""), "cuda": (CUDA, CUDA_SOURCE), "cpp": (CPP, CPP_SOURCE)}
SUFFIX = {"cuda": ".cu", "cpp": ".cpp"}


def write(name: str, way: str) -> None:
    """Writes the file, and its kernel source beside it. Raises AssayError rather than overwrite."""
    stem = name.removesuffix(".py")
    path = Path(f"{stem}.py")
    stem = path.stem
    if not stem.isidentifier():
        raise AssayError(f"assay new {name}: a name is letters, digits and underscores")
    way = way or ("triton" if importlib.util.find_spec("triton") else "cpp")
    if way not in BODIES:
        raise AssayError(f"assay new --way {way}: there are starting files for {', '.join(BODIES)}")
    body, source = BODIES[way]
    imports = "import triton\nimport triton.language as tl\n" if way == "triton" else ""
    title = stem.replace("_", " ").capitalize()
    head = HEAD.format(title=title, file=path, imports=imports, name=stem)
    files = {path: head + body.format(name=stem)}
    if source:
        files[path.with_suffix(SUFFIX[way])] = source.format(name=stem)
    for file in files:
        if file.exists():
            raise AssayError(f"assay new {name}: {file} is there already; choose another")
    for file, text in files.items():
        file.write_text(text)
        print(f"wrote {file}")
    print(f"next:  assay check {path}    then    assay bench {path}")
