"""Unseen, slow by layout: rows read by one thread each, a transposed write, a product's axes."""

import assay

EXPECT = {
    "row_total": {"cuda/slow": "uncoalesced access"},
    "turned": {"cuda/slow": "uncoalesced access"},
    "product": {"cuda/slow": "uncoalesced access"},
}

row_total = assay.Op(
    "row_total",
    lambda x: x.sum(-1),
    lambda make, rows: (make.normal(rows, 64),),
    cases=assay.grid(rows=[1024, 1 << 18]),
    bytes=lambda rows: 4 * 65 * rows,
)

ROW_TOTAL = """
extern "C" __global__ void each_its_row(float* y, const float* x) {
  const long row = blockIdx.x * 256 + threadIdx.x;
  float s = 0.0f;
  for (int c = 0; c < 64; ++c) s += x[row * 64 + c];
  y[row] = s;
}
extern "C" __global__ void a_warp_a_row(float* y, const float* x) {
  const long row = blockIdx.x * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float s = x[row * 64 + lane] + x[row * 64 + lane + 32];
  for (int k = 16; k; k /= 2) s += __shfl_xor_sync(~0u, s, k);
  if (!lane) y[row] = s;
}
"""


@row_total.launcher("cuda/slow", source=ROW_TOTAL)
def row_total_slow(k, y, x):
    k["each_its_row"](grid=x.shape[0] // 256, block=256)(y, x)


@row_total.launcher("cuda/twin", source=ROW_TOTAL)
def row_total_twin(k, y, x):
    k["a_warp_a_row"](grid=x.shape[0] // 8, block=256)(y, x)


turned = assay.Op(
    "turned",
    lambda x: x.t().contiguous(),
    lambda make, n: (make.normal(n, n),),
    cases=assay.grid(n=[256, 4096]),
    bytes=lambda n: 8 * n * n,
)

TURNED = """
extern "C" __global__ void straight(float* y, const float* x, int n) {
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  y[(long)c * n + r] = x[(long)r * n + c];
}
extern "C" __global__ void by_tiles(float* y, const float* x, int n) {
  __shared__ float tile[32][33];
  const int c = blockIdx.x * 32, r = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8)
    tile[k][threadIdx.x] = x[(long)(r + k) * n + c + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8)
    y[(long)(c + k) * n + r + threadIdx.x] = tile[threadIdx.x][k];
}
"""


@turned.launcher("cuda/slow", source=TURNED)
def turned_slow(k, y, x):
    n = x.shape[0]
    k["straight"](grid=(n // 32, n // 8), block=(32, 8))(y, x, n)


@turned.launcher("cuda/twin", source=TURNED)
def turned_twin(k, y, x):
    n = x.shape[0]
    k["by_tiles"](grid=(n // 32, n // 32), block=(32, 8))(y, x, n)


product = assay.Op(
    "product",
    lambda a, b: a @ b,
    lambda make, n: (make.normal(n, n), make.normal(n, n)),
    cases=assay.grid(n=[64, 1024]),
    flops=lambda n: 2 * n**3,
    bytes=lambda n: 12 * n * n,
)

PRODUCT = """
__device__ void dot(float* c, const float* a, const float* b, int n, int row, int col) {
  float s = 0.0f;
  for (int k = 0; k < n; ++k) s += a[row * n + k] * b[k * n + col];
  c[row * n + col] = s;
}
extern "C" __global__ void lanes_on_rows(float* c, const float* a, const float* b, int n) {
  dot(c, a, b, n, blockIdx.x * 32 + threadIdx.x, blockIdx.y * 8 + threadIdx.y);
}
extern "C" __global__ void lanes_on_columns(float* c, const float* a, const float* b, int n) {
  dot(c, a, b, n, blockIdx.y * 8 + threadIdx.y, blockIdx.x * 32 + threadIdx.x);
}
"""


@product.launcher("cuda/slow", source=PRODUCT)
def product_slow(k, c, a, b):
    n = a.shape[0]
    k["lanes_on_rows"](grid=(n // 32, n // 8), block=(32, 8))(c, a, b, n)


@product.launcher("cuda/twin", source=PRODUCT)
def product_twin(k, c, a, b):
    n = a.shape[0]
    k["lanes_on_columns"](grid=(n // 32, n // 8), block=(32, 8))(c, a, b, n)
