"""Slow by how it is launched: tail of one block, tiny grid, occupancy; each with its twin."""

import assay

EXPECT = {
    "iterate": {"cuda/slow": "tail"},
    "negate": {"cuda/slow": "tiny grid"},
    "gather": {"cuda/slow": "low occupancy"},
}

STEPS = 128


def iterated(x):
    y = x
    for _ in range(STEPS):
        y = y * 0.75 + x
    return y


# 133 blocks of 1024 threads, of which an H100 (132 multiprocessors) holds one each.
iterate = assay.Op(
    "iterate",
    iterated,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1 << 14, 133 << 14]),
    flops=lambda n: 2 * STEPS * n,
    bytes=lambda n: 8 * n,
)

ITERATE = """
__device__ float horner(float x) {
  float v = x;
  for (int s = 0; s < 128; ++s) v = v * 0.75f + x;
  return v;
}
extern "C" __global__ void long_blocks(float* y, const float* x, int n) {
  const int first = blockIdx.x * 16384 + threadIdx.x, end = min(n, (blockIdx.x + 1) * 16384);
  for (int i = first; i < end; i += 1024) y[i] = horner(x[i]);
}
extern "C" __global__ void short_blocks(float* y, const float* x) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  y[i] = horner(x[i]);
}
"""


@iterate.launcher("cuda/slow", source=ITERATE)
def iterate_slow(k, y, x):
    k["long_blocks"](grid=-(-x.numel() // 16384), block=1024, shared=120_000)(y, x, x.numel())


@iterate.launcher("cuda/twin", source=ITERATE)
def iterate_twin(k, y, x):
    k["short_blocks"](grid=x.numel() // 128, block=128)(y, x)


negate = assay.Op(
    "negate",
    lambda x: -x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1 << 14, 1 << 24]),
    bytes=lambda n: 8 * n,
)

NEGATE = """
extern "C" __global__ void negated(float* y, const float* x, int n) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) y[i] = -x[i];
}
"""


@negate.launcher("cuda/slow", source=NEGATE)
def negate_slow(k, y, x):
    k["negated"](grid=4, block=256)(y, x, x.numel())


@negate.launcher("cuda/twin", source=NEGATE)
def negate_twin(k, y, x):
    k["negated"](grid=1056, block=256)(y, x, x.numel())


gather = assay.Op(
    "gather",
    lambda x: x.flip(0),
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1 << 14, 1 << 24]),
    bytes=lambda n: 8 * n,
)

GATHER = """
extern "C" __global__ void reversed(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[n - 1 - i];
}
"""


@gather.launcher("cuda/slow", source=GATHER)
def gather_slow(k, y, x):
    k["reversed"](grid=x.numel() // 64, block=64, shared=200_000)(y, x, x.numel())


@gather.launcher("cuda/twin", source=GATHER)
def gather_twin(k, y, x):
    k["reversed"](grid=x.numel() // 256, block=256)(y, x, x.numel())
