"""Unseen, slow by how they are launched: a sum in eight blocks, a chain of tiny kernels."""

import torch

import assay

EXPECT = {
    "whole_sum": {"cuda/slow": "tiny grid"},
    "steps": {"cuda/slow": "launches"},
}

whole_sum = assay.Op(
    "whole_sum",
    lambda x: x.sum().reshape(1),
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1 << 15, 1 << 24]),
    bytes=lambda n: 4 * n,
)

WHOLE_SUM = """
extern "C" __global__ void nought(float* y) { y[0] = 0.0f; }
extern "C" __global__ void added(float* y, const float* x, int n) {
  __shared__ float part[32];
  float s = 0.0f;
  for (int i = blockIdx.x * 1024 + threadIdx.x; i < n; i += gridDim.x * 1024) s += x[i];
  for (int k = 16; k; k /= 2) s += __shfl_xor_sync(~0u, s, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < 32; ++w) s += part[w];
  atomicAdd(y, s);
}
"""


@whole_sum.launcher("cuda/slow", source=WHOLE_SUM)
def whole_sum_slow(k, y, x):
    k["nought"](grid=1, block=1)(y)
    k["added"](grid=8, block=1024)(y, x, x.numel())


@whole_sum.launcher("cuda/twin", source=WHOLE_SUM)
def whole_sum_twin(k, y, x):
    k["nought"](grid=1, block=1)(y)
    k["added"](grid=264, block=1024)(y, x, x.numel())


def stepped(x):
    y = x
    for _ in range(16):
        y = y * 0.5 + 0.25
    return y


steps = assay.Op(
    "steps",
    stepped,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[8192]),
    flops=lambda n: 32 * n,
    bytes=lambda n: 8 * n,
)

STEPS = """
extern "C" __global__ void one_step(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[i] * 0.5f + 0.25f;
}
extern "C" __global__ void all_steps(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v = x[i];
  for (int s = 0; s < 16; ++s) v = v * 0.5f + 0.25f;
  y[i] = v;
}
"""


@steps.launcher("cuda/slow", source=STEPS)
def steps_slow(k, y, x):
    grid, held = x.numel() // 256, torch.empty_like(x)
    k["one_step"](grid=grid, block=256)(held, x)
    for number in range(15):
        to, by = (y, held) if number % 2 == 0 else (held, y)
        k["one_step"](grid=grid, block=256)(to, by)


@steps.launcher("cuda/twin", source=STEPS)
def steps_twin(k, y, x):
    k["all_steps"](grid=x.numel() // 256, block=256)(y, x)
