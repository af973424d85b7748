"""Kernels with nothing left to gain: no advice is right for them."""

import torch

import assay

EXPECT = {"copied": {}, "flipped": {}, "scaled": {}, "reduced": {}, "fused": {}, "hard": {}}
STEPS = 128


def op(name, reference, flops=None, n=1 << 24):
    return assay.Op(
        name,
        reference,
        lambda make, n: (make.normal(n),),
        cases=assay.grid(n=[1 << 13, n]),
        bytes=lambda n: 8 * n,
        flops=flops,
    )


SOURCE = """
extern "C" __global__ void moved(float4* y, const float4* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[i];
}
extern "C" __global__ void turned(float* y, const float* x, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[n - 1 - i];
}
extern "C" __global__ void multiplied(float* y, const float* x, int n) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) y[i] = 3.0f * x[i];
}
extern "C" __global__ void sums(float* y, const float* x) {
  float s = 0.0f;
  for (int k = threadIdx.x; k < 4096; k += 256) s += x[(long)blockIdx.x * 4096 + k];
  for (int k = 16; k; k /= 2) s += __shfl_xor_sync(~0u, s, k);
  __shared__ float part[8];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < 8; ++w) s += part[w];
  y[blockIdx.x] = s;
}
extern "C" __global__ void together(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = fmaxf(0.5f * x[i] + 0.25f, 0.0f) * 0.125f;
}
extern "C" __global__ void worked(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v = x[i];
#pragma unroll 32
  for (int s = 0; s < 128; ++s) v = v * 0.75f + x[i];
  y[i] = v;
}
"""

copied = op("copied", lambda x: x.clone())
flipped = op("flipped", lambda x: x.flip(0))
scaled = op("scaled", lambda x: 3 * x)
fused = op("fused", lambda x: torch.relu(0.5 * x + 0.25) * 0.125)


def worked(x):
    y = x
    for _ in range(STEPS):
        y = y * 0.75 + x
    return y


hard = op("hard", worked, flops=lambda n: 2 * STEPS * n)
reduced = assay.Op(
    "reduced",
    lambda x: x.sum(-1),
    lambda make, rows: (make.normal(rows, 4096),),
    cases=assay.grid(rows=[4, 8192]),
    bytes=lambda rows: 4 * 4097 * rows,
)


@copied.launcher("cuda/sound", source=SOURCE)
def copied_sound(k, y, x):
    k["moved"](grid=x.numel() // 1024, block=256)(y, x)


@flipped.launcher("cuda/sound", source=SOURCE)
def flipped_sound(k, y, x):
    k["turned"](grid=x.numel() // 256, block=256)(y, x, x.numel())


@scaled.launcher("cuda/sound", source=SOURCE)
def scaled_sound(k, y, x):
    k["multiplied"](grid=min(1056, x.numel() // 256), block=256)(y, x, x.numel())


@reduced.launcher("cuda/sound", source=SOURCE)
def reduced_sound(k, y, x):
    k["sums"](grid=x.shape[0], block=256)(y, x)


@fused.launcher("cuda/sound", source=SOURCE)
def fused_sound(k, y, x):
    k["together"](grid=x.numel() // 256, block=256)(y, x)


@hard.launcher("cuda/sound", source=SOURCE)
def hard_sound(k, y, x):
    k["worked"](grid=x.numel() // 256, block=256)(y, x)
