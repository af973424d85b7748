"""Unseen, slow by what threads do: two ways by data, a local array, doubles on one bank."""

import torch

import assay

EXPECT = {
    "by_sign": {"cuda/slow": "divergence"},
    "scatter": {"cuda/slow": "spills"},
    "double_sum": {"cuda/slow": "bank conflicts"},
}

STEPS = 256


def signed(x):
    up, down = x, x
    for _ in range(STEPS):
        up = up * 0.75 + 0.25
        down = torch.clamp(down * 0.5 - 0.25, min=-1.0)
    return torch.where(x > 0, up, down)


by_sign = assay.Op(
    "by_sign",
    signed,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[2048, 1 << 23]),
    flops=lambda n: 2 * STEPS * n,
    bytes=lambda n: 8 * n,
)

BY_SIGN = """
extern "C" __global__ void two_ways(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v = x[i];
  if (v > 0.0f) {
    for (int s = 0; s < 256; ++s) v = v * 0.75f + 0.25f;
  } else {
    for (int s = 0; s < 256; ++s) v = fmaxf(v * 0.5f - 0.25f, -1.0f);
  }
  y[i] = v;
}
extern "C" __global__ void one_way(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v = x[i];
  const bool up = v > 0.0f;
  const float a = up ? 0.75f : 0.5f, b = up ? 0.25f : -0.25f, least = up ? -1e30f : -1.0f;
  for (int s = 0; s < 256; ++s) v = fmaxf(v * a + b, least);
  y[i] = v;
}
"""


@by_sign.launcher("cuda/slow", source=BY_SIGN)
def by_sign_slow(k, y, x):
    k["two_ways"](grid=x.numel() // 256, block=256)(y, x)


@by_sign.launcher("cuda/twin", source=BY_SIGN)
def by_sign_twin(k, y, x):
    k["one_way"](grid=x.numel() // 256, block=256)(y, x)


def scattered(x):
    """Each column's 32 numbers added into 32 places by a rule that depends on the column."""
    n = x.shape[1]
    column = torch.arange(n, device=x.device)
    made = torch.zeros_like(x)
    for k in range(32):
        place = ((k * 5 + column) % 29).unsqueeze(0)
        made = made.scatter_add(0, place, x[k : k + 1])
    weights = torch.arange(1, 33, device=x.device, dtype=x.dtype).unsqueeze(1)
    return (made * weights).sum(0)


scatter = assay.Op(
    "scatter",
    scattered,
    lambda make, n: (make.normal(32, n),),
    cases=assay.grid(n=[2048, 1 << 20]),
    flops=lambda n: 96 * n,
    bytes=lambda n: 4 * 33 * n,
)

SCATTER = """
extern "C" __global__ void own_array(float* y, const float* x, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float bin[32];
  for (int k = 0; k < 32; ++k) bin[k] = 0.0f;
  for (int k = 0; k < 32; ++k) bin[(k * 5 + i) % 29] += x[(long)k * n + i];
  float s = 0.0f;
  for (int k = 0; k < 32; ++k) s += bin[k] * (k + 1);
  y[i] = s;
}
extern "C" __global__ void no_array(float* y, const float* x, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float s = 0.0f;
#pragma unroll
  for (int k = 0; k < 32; ++k) s += x[(long)k * n + i] * ((k * 5 + i) % 29 + 1);
  y[i] = s;
}
"""


@scatter.launcher("cuda/slow", source=SCATTER)
def scatter_slow(k, y, x):
    k["own_array"](grid=x.shape[1] // 256, block=256)(y, x, x.shape[1])


@scatter.launcher("cuda/twin", source=SCATTER)
def scatter_twin(k, y, x):
    k["no_array"](grid=x.shape[1] // 256, block=256)(y, x, x.shape[1])


double_sum = assay.Op(
    "double_sum",
    lambda x: x.sum(-1),
    lambda make, rows: (make.normal(rows, 32, dtype="float64"),),
    cases=assay.grid(rows=[1024, 1 << 19]),
    bytes=lambda rows: 8 * 33 * rows,
)

DOUBLE_SUM = """
template <int PITCH>
__device__ void sums(double* y, const double* x) {
  __shared__ double tile[4][32 * PITCH];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long first = (long)(blockIdx.x * 4 + warp) * 32;
  for (int r = 0; r < 32; ++r) tile[warp][r * PITCH + lane] = x[(first + r) * 32 + lane];
  __syncwarp();
  double s = 0.0;
  for (int c = 0; c < 32; ++c) s += tile[warp][lane * PITCH + c];
  y[first + lane] = s;
}
extern "C" __global__ void straight(double* y, const double* x) { sums<32>(y, x); }
extern "C" __global__ void padded(double* y, const double* x) { sums<33>(y, x); }
"""


@double_sum.launcher("cuda/slow", source=DOUBLE_SUM)
def double_sum_slow(k, y, x):
    k["straight"](grid=x.shape[0] // 128, block=128)(y, x)


@double_sum.launcher("cuda/twin", source=DOUBLE_SUM)
def double_sum_twin(k, y, x):
    k["padded"](grid=x.shape[0] // 128, block=128)(y, x)
