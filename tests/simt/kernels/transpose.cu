// y = x transposed, in the ways that differ by sectors and bank conflicts, and other reorderings.
// 8 rows * columns bytes each.

constexpr int TILE = 32, ROWS = 8;

// Loads along rows, stores along columns: 32 sectors a store.
__global__ void transpose_naive(float* y, const float* x, int rows, int columns) {
  const int c = blockIdx.x * TILE + threadIdx.x;
  for (int k = threadIdx.y; k < TILE; k += ROWS) {
    const int r = blockIdx.y * TILE + k;
    if (r < rows && c < columns) y[c * rows + r] = x[r * columns + c];
  }
}

// Through a tile in shared memory; PAD = 0: its columns lie in one bank, PAD = 1: in 32 banks.
template <int PAD>
__global__ void transpose_tiled(float* y, const float* x, int rows, int columns) {
  __shared__ float tile[TILE][TILE + PAD];
  const int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS)
    if (r + k < rows && c < columns)
      tile[threadIdx.y + k][threadIdx.x] = x[(r + k) * columns + c];
  __syncthreads();
  const int to_c = blockIdx.y * TILE + threadIdx.x, to_r = blockIdx.x * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS)
    if (to_r + k < columns && to_c < rows)
      y[(to_r + k) * rows + to_c] = tile[threadIdx.x][threadIdx.y + k];
}

// Without padding: column c of row r is kept at c ^ r, so that rows and columns are both spread.
__global__ void transpose_swizzled(float* y, const float* x, int rows, int columns) {
  __shared__ float tile[TILE][TILE];
  const int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS)
    if (r + k < rows && c < columns)
      tile[threadIdx.y + k][threadIdx.x ^ (threadIdx.y + k)] = x[(r + k) * columns + c];
  __syncthreads();
  const int to_c = blockIdx.y * TILE + threadIdx.x, to_r = blockIdx.x * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += ROWS)
    if (to_r + k < columns && to_c < rows)
      y[(to_r + k) * rows + to_c] = tile[threadIdx.x][(threadIdx.y + k) ^ threadIdx.x];
}

// A square matrix in place: each block swaps two tiles across the diagonal through shared memory.
__global__ void transpose_in_place(float* x, int n) {
  __shared__ float a[16][17], b[16][17];
  if (blockIdx.x < blockIdx.y) return;
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int r = blockIdx.y * 16 + ty, c = blockIdx.x * 16 + tx;
  const int other_r = blockIdx.x * 16 + ty, other_c = blockIdx.y * 16 + tx;
  if (r < n && c < n) a[ty][tx] = x[r * n + c];
  if (other_r < n && other_c < n) b[ty][tx] = x[other_r * n + other_c];
  __syncthreads();
  if (other_r < n && other_c < n) x[other_r * n + other_c] = a[tx][ty];
  if (blockIdx.x != blockIdx.y && r < n && c < n) x[r * n + c] = b[tx][ty];
}

// Each 4 x 4 tile in registers: four 16-byte loads, four 16-byte stores. Sizes are multiples of 4.
__global__ void transpose_registers(float* y, const float* x, int rows, int columns) {
  const int c = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  const int r = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
  if (r >= rows || c >= columns) return;
  float4 v[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = *reinterpret_cast<const float4*>(x + (r + k) * columns + c);
  float4* to = reinterpret_cast<float4*>(y + c * rows + r);
  const int step = rows / 4;
  to[0] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
  to[step] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
  to[2 * step] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
  to[3 * step] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
}

// Patches of an image as columns (im2col), 3 x 3, padding 1: y[(ky, kx), (i, j)].
__global__ void image_to_columns(float* y, const float* x, int height, int width) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= height || j >= width) return;
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    const int r = i + k / 3 - 1, c = j + k % 3 - 1;
    const bool inside = r >= 0 && r < height && c >= 0 && c < width;
    y[(k * height + i) * width + j] = inside ? x[r * width + c] : 0;
  }
}

// y = x reversed within each row, by one warp, through shared memory that all its rows reuse.
__global__ void reverse_rows(int* y, const int* x, int rows, int n) {
  __shared__ int row[64];
#pragma unroll 1
  for (int r = 0; r < rows; ++r) {
    if (threadIdx.x < n) row[threadIdx.x] = x[r * n + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < n) y[r * n + threadIdx.x] = row[n - 1 - threadIdx.x];
    __syncthreads();
  }
}
