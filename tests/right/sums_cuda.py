"""Sums in CUDA in every order: compensated, in float64, by trees, by shuffles, by atomics (V3)."""

import torch

import assay

IDS = {
    "cuda/kahan": "V3",
    "cuda/float64": "V3",
    "cuda/tree": "V3",
    "cuda/shuffles": "V3",
    "cuda/atomics": "V3 V16",
    "cuda/fours": "V3 I6",
    "cuda/grid_stride": "V3",
    "cuda/integers": "V3",
}
TEXT = r"""
extern "C" __global__ void kahan(float* y, const float* x, int n) {
    float sum = 0, lost = 0;
    for (int i = 0; i < n; i++) {
        const float next = x[i] - lost, total = sum + next;
        lost = (total - sum) - next;
        sum = total;
    }
    *y = sum;
}
extern "C" __global__ void wide(float* y, const float* x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    *y = static_cast<float>(sum);
}
extern "C" __global__ void tree(float* y, const float* x, int n) {
    __shared__ float s[128];
    const int t = threadIdx.x;
    float sum = 0;
    for (int i = t; i < n; i += 128) sum += x[i];
    s[t] = sum;
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) s[t] += s[t + half];
    }
    if (t == 0) *y = s[0];
}
extern "C" __global__ void shuffles(float* y, const float* x, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x == 0) *y = sum;
}
extern "C" __global__ void atomics(float* y, const float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(y, x[i]);
}
extern "C" __global__ void fours(float* y, const float* x, int n) {
    float sum = 0;
    const bool aligned = (unsigned long long)x % 16 == 0;
    for (int i = threadIdx.x * 4; i < n; i += 128) {
        if (aligned && i + 4 <= n) {
            const float4 v = *(const float4*)(x + i);
            sum += (v.x + v.y) + (v.z + v.w);
        } else {
            for (int j = i; j < i + 4 && j < n; j++) sum += x[j];
        }
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0) *y = sum;
}
"""


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op(
    "summed_by_cuda",
    lambda x: x.sum(),
    inputs,
    cases=assay.grid(n=[257]),
    # Of an infinite sum Kahan keeps NaN; atomic additions flush what is subnormal.
    excludes=("size", "inf", "huge", "masked", "tiny", "denormal"),
)


def variant(name, kernel, block, blocks=1, clear=False):
    @op.launcher(f"cuda/{name}", source=TEXT)
    def launch(k, y, x):
        if clear:
            y.zero_()
        k[kernel](grid=blocks, block=block)(y, x, x.numel())


variant("kahan", "kahan", 1)
variant("float64", "wide", 1)
variant("tree", "tree", 128)
variant("shuffles", "shuffles", 32)
variant("atomics", "atomics", 64, blocks=5, clear=True)
variant("fours", "fours", 32)

COPY = r"""
extern "C" __global__ void affine(float* y, const float* x, long long n) {
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = __fmaf_rn(3.0f, x[i], 1.0f);
}
"""

affine = assay.Op("affine", lambda x: 3 * x + 1, inputs, cases=assay.grid(n=[1000]))


@affine.launcher("cuda/grid_stride", source=COPY)
def grid_stride(k, y, x):
    """One rounding where the reference has two."""
    if x.numel():
        k["affine"](grid=3, block=64)(y, x, x.numel())


BINS = r"""
extern "C" __global__ void count(int* bins, const int* x, int n) {
    __shared__ int mine[16];
    if (threadIdx.x < 16) mine[threadIdx.x] = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&mine[x[i]], 1);
    __syncthreads();
    if (threadIdx.x < 16 && mine[threadIdx.x]) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
"""


def values(make, n):
    return (make.integers(n, low=0, high=16, dtype="int32"),)


def histogram(x):
    return (x[:, None] == torch.arange(16)).sum(0, dtype=torch.int32)


bins = assay.Op("histogram", histogram, values, cases=assay.grid(n=[300]))


@bins.launcher("cuda/integers", source=BINS)
def integers(k, y, x):
    y.zero_()
    if x.numel():
        k["count"](grid=-(-x.numel() // 128), block=128)(y, x, x.numel())
