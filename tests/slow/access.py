"""Slow by how memory is touched: uncoalesced, bank conflicts, atomics; each with its twin."""

import assay

EXPECT = {
    "scale": {"cuda/slow": "uncoalesced access"},
    "row_sum": {"cuda/slow": "bank conflicts"},
    "total": {"cuda/slow": "atomics on one address"},
}

scale = assay.Op(
    "scale",
    lambda x: 2 * x + 1,
    lambda make, rows, n: (make.normal(rows, n),),
    cases=assay.grid(rows=[128, 4096], n=[256, 4096]),
    flops=lambda rows, n: 2 * rows * n,
    bytes=lambda rows, n: 8 * rows * n,
)

SCALE = """
extern "C" __global__ void down(float* y, const float* x, int rows, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= rows * n) return;
  const int i = t % rows * n + t / rows;
  y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" __global__ void across(float* y, const float* x, int rows, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * n) y[i] = 2.0f * x[i] + 1.0f;
}
"""


@scale.launcher("cuda/slow", source=SCALE)
def scale_slow(k, y, x):
    k["down"](grid=-(-x.numel() // 256), block=256)(y, x, *x.shape)


@scale.launcher("cuda/twin", source=SCALE)
def scale_twin(k, y, x):
    k["across"](grid=-(-x.numel() // 256), block=256)(y, x, *x.shape)


row_sum = assay.Op(
    "row_sum",
    lambda x: x.sum(-1),
    lambda make, rows: (make.normal(rows, 32),),
    cases=assay.grid(rows=[1024, 1 << 20]),
    bytes=lambda rows: 4 * 33 * rows,
)

ROW_SUM = """
template <int PITCH>
__device__ void sums(float* y, const float* x) {
  __shared__ float tile[4][32 * PITCH];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long first = (long)(blockIdx.x * 4 + warp) * 32;
  for (int r = 0; r < 32; ++r) tile[warp][r * PITCH + lane] = x[(first + r) * 32 + lane];
  __syncwarp();
  float s = 0.0f;
  for (int c = 0; c < 32; ++c) s += tile[warp][lane * PITCH + c];
  y[first + lane] = s;
}
extern "C" __global__ void straight(float* y, const float* x) { sums<32>(y, x); }
extern "C" __global__ void padded(float* y, const float* x) { sums<33>(y, x); }
"""


@row_sum.launcher("cuda/slow", source=ROW_SUM)
def row_sum_slow(k, y, x):
    k["straight"](grid=x.shape[0] // 128, block=128)(y, x)


@row_sum.launcher("cuda/twin", source=ROW_SUM)
def row_sum_twin(k, y, x):
    k["padded"](grid=x.shape[0] // 128, block=128)(y, x)


total = assay.Op(
    "total",
    lambda x: x.sum().reshape(1),
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1 << 14, 1 << 24]),
    bytes=lambda n: 4 * n,
)

TOTAL = """
extern "C" __global__ void clear(float* y) { y[0] = 0.0f; }
extern "C" __global__ void each(float* y, const float* x, int n) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(y, x[i]);
}
extern "C" __global__ void gathered(float* y, const float* x, int n) {
  __shared__ float part[8];
  float s = 0.0f;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) s += x[i];
  for (int k = 16; k; k /= 2) s += __shfl_xor_sync(~0u, s, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < 8; ++w) s += part[w];
  atomicAdd(y, s);
}
"""


@total.launcher("cuda/slow", source=TOTAL)
def total_slow(k, y, x):
    k["clear"](grid=1, block=1)(y)
    k["each"](grid=min(1056, x.numel() // 256), block=256)(y, x, x.numel())


@total.launcher("cuda/twin", source=TOTAL)
def total_twin(k, y, x):
    k["clear"](grid=1, block=1)(y)
    k["gathered"](grid=1056, block=256)(y, x, x.numel())
