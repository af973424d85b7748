// Matrix units by mma.sync, with ldmatrix, in inline PTX.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ void load_four(unsigned (&r)[4], const void* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

__device__ void load_two_transposed(unsigned (&r)[2], const void* row) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(at));
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                         __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// C = A B of 16-bit floats: tiles of 16 x 16 and 16 x 32 in shared memory, rows padded against bank
// conflicts, fragments by ldmatrix. Two warps, each 16 x 16 of C.
template <typename T>
__global__ void mma_tiles(float* c, const T* a, const T* b, int n, int k) {
  __shared__ __align__(16) T as[16][24], bs[16][40];
  const int t = threadIdx.x, lane = t & 31, warp = t / 32;
  const int row0 = blockIdx.y * 16, col0 = blockIdx.x * 32;
  float sum[2][4] = {};
#pragma unroll 1
  for (int i = 0; i < k; i += 16) {
    if (t < 32)
      *reinterpret_cast<uint4*>(&as[t / 2][t % 2 * 8]) =
          *reinterpret_cast<const uint4*>(a + (row0 + t / 2) * k + i + t % 2 * 8);
    *reinterpret_cast<uint4*>(&bs[t / 4][t % 4 * 8]) =
        *reinterpret_cast<const uint4*>(b + (i + t / 4) * n + col0 + t % 4 * 8);
    __syncthreads();
    unsigned fa[4], fb[2];
    load_four(fa, &as[lane % 16][lane / 16 * 8]);
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      load_two_transposed(fb, &bs[lane % 16][warp * 16 + p * 8]);
      multiply(sum[p], fa, fb, T());
    }
    __syncthreads();
  }
  for (int p = 0; p < 2; ++p)
    for (int e = 0; e < 4; ++e) {
      const int row = row0 + lane / 4 + e / 2 * 8;
      c[row * n + col0 + warp * 16 + p * 8 + lane % 4 * 2 + e % 2] = sum[p][e];
    }
}

// One m16n8k32 product of signed bytes, A in rows and B in columns, straight from global memory.
__global__ void mma_int8(int* c, const int* a, const int* b) {
  const int lane = threadIdx.x, row = lane / 4, q = lane % 4;
  int sum[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[row * 8 + q]), "r"(a[(row + 8) * 8 + q]), "r"(a[row * 8 + q + 4]),
        "r"(a[(row + 8) * 8 + q + 4]), "r"(b[row * 8 + q]), "r"(b[row * 8 + q + 4]));
  for (int e = 0; e < 4; ++e) c[(row + e / 2 * 8) * 8 + q * 2 + e % 2] = sum[e];
}

// C = A B in doubles by m8n8k4: one warp, k in steps of four.
__global__ void mma_double(double* c, const double* a, const double* b, int k) {
  const int lane = threadIdx.x;
  double sum[2] = {0, 0};
  for (int i = 0; i < k; i += 4)
    asm volatile(
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(sum[0]), "+d"(sum[1])
        : "d"(a[lane / 4 * k + i + lane % 4]), "d"(b[(i + lane % 4) * 8 + lane / 4]));
  c[lane / 4 * 8 + lane % 4 * 2] = sum[0];
  c[lane / 4 * 8 + lane % 4 * 2 + 1] = sum[1];
}
