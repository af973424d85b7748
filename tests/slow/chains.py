"""Slow by what is between kernels: many launches, an unfused chain, waits; each with its twin."""

import torch

import assay

EXPECT = {
    "small_chain": {"eager/slow": "launches"},
    "large_chain": {"cuda/slow": "unfused chain"},
    "sums": {"eager/slow": "waits of the host"},
}


def chained(x):
    y = x
    for _ in range(10):
        y = torch.relu(y * 0.5 + 0.125)
    return y


small_chain = assay.Op(
    "small_chain",
    chained,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[4096]),
    bytes=lambda n: 8 * n,
)

SMALL = """
extern "C" __global__ void at_once(float* y, const float* x, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  for (int s = 0; s < 10; ++s) v = fmaxf(v * 0.5f + 0.125f, 0.0f);
  y[i] = v;
}
"""


@small_chain.variant("eager/slow")
def small_slow(x):
    y = x
    for _ in range(10):
        y = torch.relu(y * 0.5 + 0.125)
    return y


@small_chain.launcher("cuda/twin", source=SMALL)
def small_twin(k, y, x):
    k["at_once"](grid=-(-x.numel() // 256), block=256)(y, x, x.numel())


large_chain = assay.Op(
    "large_chain",
    lambda x: torch.relu(x * 0.5 + 0.125) * 3,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[4096, 1 << 24]),
    bytes=lambda n: 8 * n,
)

LARGE = """
#define EACH const int i = blockIdx.x * 256 + threadIdx.x
extern "C" __global__ void halve(float* y, const float* x) { EACH; y[i] = 0.5f * x[i]; }
extern "C" __global__ void shift(float* y, const float* x) { EACH; y[i] = x[i] + 0.125f; }
extern "C" __global__ void clip(float* y, const float* x) { EACH; y[i] = fmaxf(x[i], 0.0f); }
extern "C" __global__ void triple(float* y, const float* x) { EACH; y[i] = 3.0f * x[i]; }
extern "C" __global__ void fused(float* y, const float* x) {
  EACH;
  y[i] = 3.0f * fmaxf(0.5f * x[i] + 0.125f, 0.0f);
}
"""


@large_chain.launcher("cuda/slow", source=LARGE)
def large_slow(k, y, x):
    a, b, grid = torch.empty_like(x), torch.empty_like(x), x.numel() // 256
    k["halve"](grid=grid, block=256)(a, x)
    k["shift"](grid=grid, block=256)(b, a)
    k["clip"](grid=grid, block=256)(a, b)
    k["triple"](grid=grid, block=256)(y, a)


@large_chain.launcher("cuda/twin", source=LARGE)
def large_twin(k, y, x):
    k["fused"](grid=x.numel() // 256, block=256)(y, x)


sums = assay.Op(
    "sums",
    lambda x: x.sum(-1),
    lambda make, rows: (make.normal(rows, 256),),
    cases=assay.grid(rows=[64]),
    bytes=lambda rows: 4 * 257 * rows,
)


@sums.variant("eager/slow")
def sums_slow(x):
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    for row in range(x.shape[0]):
        y[row] = x[row].sum().item()
    return y


@sums.variant("eager/twin")
def sums_twin(x):
    return x.sum(-1)
