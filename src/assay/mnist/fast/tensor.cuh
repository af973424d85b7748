// Tensor cores by mma.sync in tf32, and sums over the partial results that blocks leave.
//
// Fragments of m16n8k8 (PTX ISA, "Matrix Fragments for mma.m16n8k8"), with row = lane / 4 and
// at = lane % 4: A has (row, at), (row + 8, at), (row, at + 4), (row + 8, at + 4); B has
// (k = at, n = row), (k = at + 4, n = row); C has (row, 2 at), (row, 2 at + 1) and the same of row + 8.
#pragma once

#include "assay.cuh"

typedef unsigned int u32;
typedef long long i64;

constexpr int THREADS = 256, WARPS = THREADS / 32;

// Rounded to the 10 bits of mantissa that a tf32 operand has, halves away from zero.
__device__ __forceinline__ float tf32(float v) {
  u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return __uint_as_float(bits);
}

// c += a b, 16 x 8 x 8.
__device__ __forceinline__ void mma8(float (&c)[4], float a0, float a1, float a2, float a3, float b0,
                                     float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// c += a b, 16 x 8 x 4.
__device__ __forceinline__ void mma4(float (&c)[4], float a0, float a1, float b0) {
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(b0)));
}

// BYTES on their way to shared memory, or zeros if not `there`; a group of such ends with `sent`, and
// all but the last LEFT groups of this thread are there after `wait_for_sent`.
template <int BYTES, class T>
__device__ __forceinline__ void send(T* to, const T* from, bool there) {
  const u32 shared = u32(__cvta_generic_to_shared(to)), bytes = there ? BYTES : 0;
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from), "n"(BYTES),
                 "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void sent() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT>
__device__ __forceinline__ void wait_for_sent() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// max(v, 0), but a NaN stays.
__device__ __forceinline__ float relu(float v) { return v <= 0.f ? 0.f : v; }

__device__ __forceinline__ float over_warp(float v) {
#pragma unroll
  for (int far = 16; far; far /= 2) v += __shfl_xor_sync(~0u, v, far);
  return v;
}

__device__ __forceinline__ void add(float4& sum, const float4& v) {
  sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
}
// Fours of floats at from, from + stride, ... (count of them) added up in this order. AT_ONCE loads
// are on their way together, also where there are fewer: a loop's remainder would wait for each alone.
// Plain loads: those of __ldg are not promised to come behind griddepcontrol.wait.
template <int AT_ONCE>
__device__ __forceinline__ float4 sum_fours(const float* from, i64 stride, int count) {
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 1
  for (int r = 0; r < count; r += AT_ONCE) {
    float4 v[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i)
      v[i] = r + i < count ? *reinterpret_cast<const float4*>(from + (r + i) * stride)
                           : make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) add(sum, v[i]);
  }
  return sum;
}
// How many of first, first + step, ... are below end.
__device__ __forceinline__ int count_of(int first, int end, int step) {
  return first < end ? (end - first + step - 1) / step : 0;
}

// sums[i] = sum over rows of parts[row][i], in an order that depends on `rows` alone. parts: WIDTH
// floats a row, 16-byte aligned. All threads call it; sums are there for all afterwards.
template <int WIDTH, int AT_ONCE = 9>
__device__ void sum_rows(double* sums, float* scratch, const float* parts, int rows) {
  constexpr int QUADS = WIDTH / 4, GROUPS = THREADS / QUADS;
  static_assert(WIDTH % 4 == 0 && THREADS % QUADS == 0, "threads share the columns out by four");
  const int quad = threadIdx.x % QUADS, group = threadIdx.x / QUADS;
  *reinterpret_cast<float4*>(scratch + group * WIDTH + quad * 4) = sum_fours<AT_ONCE>(
      parts + group * WIDTH + quad * 4, GROUPS * WIDTH, count_of(group, rows, GROUPS));
  __syncthreads();
  if (threadIdx.x < WIDTH) {
    double total = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) total += scratch[g * WIDTH + threadIdx.x];
    sums[threadIdx.x] = total;
  }
  __syncthreads();
}
