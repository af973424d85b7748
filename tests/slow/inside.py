"""Slow by what threads do: spills, divergence, float64 by accident; each with its twin."""

import torch

import assay

EXPECT = {
    "mix": {"cuda/slow": "spills"},
    "kinds": {"cuda/slow": "divergence"},
    "polynomial": {"cuda/slow": "fp64 instructions"},
}

TAPS = 64


def mixed(x):
    v = list(x)
    for k in range(TAPS):
        v[k] = v[k] * 0.5 + v[(k + 17) % TAPS]
    for k in range(TAPS):
        v[k] = v[k] * 0.5 + v[(k * 5 + 3) % TAPS]
    for k in range(TAPS):
        v[k] = v[k] * 0.5 + v[(k + 29) % TAPS]
    return torch.stack(v).sum(0)


mix = assay.Op(
    "mix",
    mixed,
    lambda make, n: (make.normal(TAPS, n),),
    cases=assay.grid(n=[2048, 1 << 20]),
    flops=lambda n: 7 * TAPS * n,
    bytes=lambda n: 4 * (TAPS + 1) * n,
)

MIX = """
__device__ __forceinline__ void mix(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = x[(long)k * n + i];
#pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = v[k] * 0.5f + v[(k + 17) % 64];
#pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = v[k] * 0.5f + v[(k * 5 + 3) % 64];
#pragma unroll
  for (int k = 0; k < 64; ++k) v[k] = v[k] * 0.5f + v[(k + 29) % 64];
  float s = 0.0f;
#pragma unroll
  for (int k = 0; k < 64; ++k) s += v[k];
  y[i] = s;
}
extern "C" __global__ void __launch_bounds__(256, 8) tight(float* y, const float* x, int n) {
  mix(y, x, n);
}
extern "C" __global__ void __launch_bounds__(256, 2) roomy(float* y, const float* x, int n) {
  mix(y, x, n);
}
"""


@mix.launcher("cuda/slow", source=MIX)
def mix_slow(k, y, x):
    k["tight"](grid=x.shape[1] // 256, block=256)(y, x, x.shape[1])


@mix.launcher("cuda/twin", source=MIX)
def mix_twin(k, y, x):
    k["roomy"](grid=x.shape[1] // 256, block=256)(y, x, x.shape[1])


STEPS = 64


def of_kinds(x):
    kind = torch.arange(x.numel(), device=x.device) % 8
    a = 0.5 + kind.to(x.dtype) / 32
    y = x
    for step in range(STEPS):
        y = y * a + torch.where(step % (kind + 1) == 0, 0.125, 0.25).to(x.dtype)
    return y


kinds = assay.Op(
    "kinds",
    of_kinds,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[2048, 1 << 24]),
    flops=lambda n: 2 * STEPS * n,
    bytes=lambda n: 8 * n,
)

# Each kind adds its own pattern of constants, else the compiler makes one loop of all.
KINDS = """
template <int K>
__device__ float walk(float v) {
  for (int s = 0; s < 64; ++s) v = v * (0.5f + K / 32.0f) + (s % (K + 1) ? 0.25f : 0.125f);
  return v;
}
__device__ float of_kind(int kind, float v) {
  switch (kind) {
    case 0: return walk<0>(v);
    case 1: return walk<1>(v);
    case 2: return walk<2>(v);
    case 3: return walk<3>(v);
    case 4: return walk<4>(v);
    case 5: return walk<5>(v);
    case 6: return walk<6>(v);
    default: return walk<7>(v);
  }
}
extern "C" __global__ void mixed(float* y, const float* x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  y[i] = of_kind(i % 8, x[i]);
}
extern "C" __global__ void sorted(float* y, const float* x) {
  __shared__ float tile[256];
  const int i = blockIdx.x * 256 + threadIdx.x, mine = threadIdx.x % 32 * 8 + threadIdx.x / 32;
  tile[threadIdx.x] = x[i];
  __syncthreads();
  tile[mine] = of_kind(mine % 8, tile[mine]);
  __syncthreads();
  y[i] = tile[threadIdx.x];
}
"""


@kinds.launcher("cuda/slow", source=KINDS)
def kinds_slow(k, y, x):
    k["mixed"](grid=x.numel() // 256, block=256)(y, x)


@kinds.launcher("cuda/twin", source=KINDS)
def kinds_twin(k, y, x):
    k["sorted"](grid=x.numel() // 256, block=256)(y, x)


def horner(x):
    y = x
    for _ in range(STEPS):
        y = y * 0.75 + x
    return y


polynomial = assay.Op(
    "polynomial",
    horner,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[2048, 1 << 24]),
    flops=lambda n: 2 * STEPS * n,
    bytes=lambda n: 8 * n,
)

POLYNOMIAL = """
template <typename T>
__device__ void horner(float* y, const float* x, T a) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v = x[i];
  for (int s = 0; s < 64; ++s) v = v * a + x[i];
  y[i] = v;
}
extern "C" __global__ void wide(float* y, const float* x) { horner(y, x, 0.75); }
extern "C" __global__ void narrow(float* y, const float* x) { horner(y, x, 0.75f); }
"""


@polynomial.launcher("cuda/slow", source=POLYNOMIAL)
def polynomial_slow(k, y, x):
    k["wide"](grid=x.numel() // 256, block=256)(y, x)


@polynomial.launcher("cuda/twin", source=POLYNOMIAL)
def polynomial_twin(k, y, x):
    k["narrow"](grid=x.numel() // 256, block=256)(y, x)
