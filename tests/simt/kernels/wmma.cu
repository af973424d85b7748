// Matrix units by nvcuda::wmma, whose fragments are opaque. mma.h needs nvidia-cuda-crt's headers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// C = A B, halves to floats, one warp a 16 x 16 tile, operands from global memory.
__global__ void wmma_half(float* c, const __half* a, const __half* b, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  const int row = blockIdx.y * 16, col = blockIdx.x * 16;
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + row * k + i, k);
    wmma::load_matrix_sync(fb, b + i * n + col, n);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  wmma::store_matrix_sync(c + row * n + col, sum, n, wmma::mem_row_major);
}

// The same from bfloat16, B in columns, tiles of 32 x 8, C scaled in the fragment.
__global__ void wmma_bf16(float* c, const __nv_bfloat16* a, const __nv_bfloat16* b, float scale,
                          int n, int k) {
  wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 32 * k + i, k);
    wmma::load_matrix_sync(fb, b + blockIdx.x * 8 * k + i, k);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int e = 0; e < sum.num_elements; ++e) sum.x[e] *= scale;
  wmma::store_matrix_sync(c + blockIdx.y * 32 * n + blockIdx.x * 8, sum, n, wmma::mem_row_major);
}

// The same in TF32: inputs are rounded to 11 bits in the fragments.
__global__ void wmma_tf32(float* c, const float* a, const float* b, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i < k; i += 8) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + i, k);
    wmma::load_matrix_sync(fb, b + i * n + blockIdx.x * 16, n);
    for (int e = 0; e < fa.num_elements; ++e) fa.x[e] = wmma::__float_to_tf32(fa.x[e]);
    for (int e = 0; e < fb.num_elements; ++e) fb.x[e] = wmma::__float_to_tf32(fb.x[e]);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}

// The same of 8-bit whole numbers, two warps through shared memory; the result in columns.
__global__ void wmma_int8(int* c, const signed char* a, const signed char* b, int k) {
  __shared__ __align__(32) signed char as[16][16], bs[32][16];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::fill_fragment(sum, 0);
  const int r = threadIdx.x / 2, q = threadIdx.x % 2 * 8, half = threadIdx.x / 32 * 16;
#pragma unroll 1
  for (int i = 0; i < k; i += 16) {
    if (r < 16)
      *reinterpret_cast<int2*>(&as[r][q]) = *reinterpret_cast<const int2*>(a + r * k + i + q);
    *reinterpret_cast<int2*>(&bs[r][q]) = *reinterpret_cast<const int2*>(b + r * k + i + q);
    __syncthreads();
    wmma::load_matrix_sync(fa, &as[0][0], 16);
    wmma::load_matrix_sync(fb, &bs[half][0], 16);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncthreads();
  }
  wmma::store_matrix_sync(c + half * 16, sum, 16, wmma::mem_col_major);
}
