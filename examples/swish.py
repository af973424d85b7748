"""Swish, my way.   assay check swish.py   ·   assay bench swish.py"""
import torch, triton, triton.language as tl
import assay

def reference(x):                                    # what it means
    return x * torch.sigmoid(x)

def inputs(make, n, dtype):                          # what feeds it
    return (make.normal(n, dtype=dtype),)

swish = assay.Op("swish", reference, inputs, flops=lambda n, dtype: 4 * n,
                 cases=assay.grid(n=[1, 1000, 1 << 16, 1 << 24], dtype=["float32", "bfloat16"]))

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n).to(tl.float32)
    tl.store(y + i, v * tl.sigmoid(v), i < n)

@swish.launcher("triton", knobs={"BLOCK": [256, 1024, 4096]})
def launch(out, x, BLOCK):
    kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
