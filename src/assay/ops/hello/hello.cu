// Every thread writes its indices: the first kernel, which shows how threads map to elements.
//
// The idea: blocks of blockDim threads tile the array, x fastest, so that neighbouring threads (and
// so the 32 lanes of a warp) stand for neighbouring elements. A thread writes its eight numbers as
// two pieces of 16 bytes: one by one, each of a warp's stores would touch 32 sectors of memory.
//
// shapes  x: (d, h, w) int; y: (d, h, w, 8) int
// bytes   36 * d * h * w: 4 read and 32 written an element
// FLOPs   none
#include "assay.cuh"

extern "C" __global__ void hello(int* y, const int* x, int d, int h, int w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = blockIdx.y * blockDim.y + threadIdx.y;
  const int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i >= w || j >= h || k >= d) return;  // the last blocks reach beyond the array

  const long long flat = (static_cast<long long>(k) * h + j) * w + i;
  int* mine = y + 8 * flat;
  const assay::Vec<int, 4> who[2] = {
      {int(blockIdx.x), int(blockIdx.y), int(blockIdx.z), int(threadIdx.x)},
      {int(threadIdx.y), int(threadIdx.z), int(flat), x[flat]}};
  if (assay::aligned(y)) {
    assay::store(mine, who[0]);
    assay::store(mine + 4, who[1]);
  } else {
#pragma unroll
    for (int n = 0; n < 8; ++n) mine[n] = who[n / 4][n % 4];
  }
}
