"""What a stride costs: lanes that read far apart fetch sectors of which they use little.

    assay count strides.py:strides -k cuda --case "n=65536 stride=8"
    assay bench strides.py

y[i] = x[i * stride]: a sector is 32 bytes, eight float32. At stride 1 a warp's request touches four
sectors and uses all of them; at stride 8 and beyond it touches 32 and uses an eighth of each.
"""

import assay


def reference(x, stride):
    return x[::stride].clone()


def inputs(make, n, stride):
    return (make.normal(n * stride), stride)


strides = assay.Op(
    "strides",
    reference,
    inputs,
    flops=lambda n, stride: 0,
    bytes=lambda n, stride: 4 * n + 4 * n * min(stride, 8),  # whole sectors are read
    supports=lambda n, stride: stride > 0 or "a stride of 0 names one element",
    cases=assay.grid(n=[65536, 1 << 21], stride=[1, 2, 4, 8, 16, 32]),
)


@strides.launcher("cuda", source="strides.cu")
def launch(k, y, x, stride):
    n = y.numel()
    if n:
        k["strided"](grid=-(-n // 256), block=256, shared=0)(y, x, n, stride)
