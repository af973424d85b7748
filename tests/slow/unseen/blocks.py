"""Written after the model was set against a clock: blocks, columns, another chain, registers."""

import torch

import assay

EXPECT = {
    "clamped": {"cuda/slow": "too little work per block"},
    "weighted": {"cuda/slow": "uncoalesced access"},
    "softened": {"eager/slow": "unfused chain"},
    "lifted": {"cuda/slow": "low occupancy"},
}

clamped = assay.Op(
    "clamped",
    lambda x: x.clamp(-1.0, 1.0),
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1 << 14, 1 << 24]),
    bytes=lambda n: 8 * n,
)

CLAMPED = """
extern "C" __global__ void clamp_all(float* y, const float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = fminf(fmaxf(x[i], -1.0f), 1.0f);
}
"""


@clamped.launcher("cuda/slow", source=CLAMPED)
def clamped_slow(k, y, x):
    k["clamp_all"](grid=x.numel() // 32, block=32)(y, x, x.numel())


@clamped.launcher("cuda/twin", source=CLAMPED)
def clamped_twin(k, y, x):
    k["clamp_all"](grid=1056, block=256)(y, x, x.numel())


weighted = assay.Op(
    "weighted",
    lambda x, w: x * w,
    lambda make, rows, n: (make.normal(rows, n), make.normal(n)),
    cases=assay.grid(rows=[128, 8192], n=[2048]),
    bytes=lambda rows, n: 8 * rows * n + 4 * n,
)

WEIGHTED = """
extern "C" __global__ void down(float* y, const float* x, const float* w, int rows, int n) {
  const int c = blockIdx.x;
  for (int r = threadIdx.x; r < rows; r += blockDim.x) y[r * n + c] = x[r * n + c] * w[c];
}
extern "C" __global__ void along(float* y, const float* x, const float* w, int rows, int n) {
  const int r = blockIdx.x;
  for (int c = threadIdx.x; c < n; c += blockDim.x) y[r * n + c] = x[r * n + c] * w[c];
}
"""


@weighted.launcher("cuda/slow", source=WEIGHTED)
def weighted_slow(k, y, x, w):
    k["down"](grid=x.shape[1], block=256)(y, x, w, *x.shape)


@weighted.launcher("cuda/twin", source=WEIGHTED)
def weighted_twin(k, y, x, w):
    k["along"](grid=x.shape[0], block=256)(y, x, w, *x.shape)


softened = assay.Op(
    "softened",
    lambda x: x / (x.abs().sqrt() + 1.0),
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[4096, 1 << 24]),
    bytes=lambda n: 8 * n,
)

SOFTENED = """
extern "C" __global__ void soften(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = x[i] / (sqrtf(fabsf(x[i])) + 1.0f);
}
"""


@softened.variant("eager/slow")
def softened_slow(x):
    size = torch.abs(x)
    root = torch.sqrt(size)
    more = root + 1.0
    return x / more


@softened.launcher("cuda/twin", source=SOFTENED)
def softened_twin(k, y, x):
    k["soften"](grid=x.numel() // 256, block=256)(y, x)


WEIGHTS, ROWS = 144, 16


def lifted_all(x, w):
    y = x * 0.5
    y[-1] += w.sum()
    return y


lifted = assay.Op(
    "lifted",
    lifted_all,
    lambda make, n: (make.normal(ROWS, n), make.normal(WEIGHTS)),
    cases=assay.grid(n=[2048, 1 << 20]),
    bytes=lambda n: 8 * ROWS * n,
)

# Stores may change the weights, so that what is read before them has to stay in registers.
LIFTED = """
template <bool FIRST>
__device__ __forceinline__ void lift(float* y, const float* x, const float* w, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  float held[144], sum = 0.0f;
  if (FIRST) {
#pragma unroll
    for (int k = 0; k < 144; ++k) held[k] = w[k];
  }
#pragma unroll 1
  for (int r = 0; r < 15; ++r) y[r * n + i] = 0.5f * x[r * n + i];
#pragma unroll
  for (int k = 0; k < 144; ++k) sum += FIRST ? held[k] : w[k];
  y[15 * n + i] = 0.5f * x[15 * n + i] + sum;
}
extern "C" __global__ void early(float* y, const float* x, const float* w, int n) {
  lift<true>(y, x, w, n);
}
extern "C" __global__ void late(float* y, const float* x, const float* w, int n) {
  lift<false>(y, x, w, n);
}
"""


@lifted.launcher("cuda/slow", source=LIFTED)
def lifted_slow(k, y, x, w):
    k["early"](grid=x.shape[1] // 128, block=128)(y, x, w, x.shape[1])


@lifted.launcher("cuda/twin", source=LIFTED)
def lifted_twin(k, y, x, w):
    k["late"](grid=x.shape[1] // 128, block=128)(y, x, w, x.shape[1])
