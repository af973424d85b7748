// Half precision, bfloat16 and 8-bit floats: pairs in a register, sums in float.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// y = a * x + y, two halves at a time; an odd last element alone. 6 n bytes, 2 n FLOPs.
__global__ void half_axpy(__half* y, const __half* x, __half a, int n) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 1 < n) {
    const __half2 v = *reinterpret_cast<const __half2*>(x + i);
    __half2* to = reinterpret_cast<__half2*>(y + i);
    *to = __hfma2(__half2half2(a), v, *to);
  } else if (i < n) {
    y[i] = __hfma(a, x[i], y[i]);
  }
}

// SiLU in half: y = x / (1 + exp(-x)), by h2exp and h2rcp.
__global__ void half_silu(__half2* y, const __half2* x, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const __half2 one = __float2half2_rn(1);
  y[i] = __hmul2(x[i], h2rcp(__hadd2(one, h2exp(__hneg2(x[i])))));
}

// Comparisons, largest and smallest, ReLU by fma, absolute value, rounding, of halves.
__global__ void half_compares(__half* y, const __half* a, const __half* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half p = a[i], q = b[i];
  y[i] = __hmax(p, q);
  y[n + i] = __hmin(p, q);
  y[2 * n + i] = __hgt(p, q) ? p : __hsub(q, p);
  y[3 * n + i] = __hfma_relu(p, q, p);
  y[4 * n + i] = __habs(p);
  y[5 * n + i] = hrint(__hmul(p, __float2half(4)));
  y[6 * n + i] = __hadd_sat(p, q);
  y[7 * n + i] = __hlt(p, __float2half(0)) ? __hneg(q) : hsqrt(__habs(q));
}

// Sums of squares of rows in float of bfloat16 inputs; 16-byte loads of eight of them.
__global__ void bf16_squares(float* y, const uint4* x, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n / 8; i += 32) {
    const uint4 raw = x[blockIdx.x * (n / 8) + i];
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 v = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&words[k]));
      sum += v.x * v.x + v.y * v.y;
    }
  }
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// y = (a * b + c) in bfloat16 pairs with largest of the pair and the NaN-propagating maximum.
__global__ void bf16_arithmetic(__nv_bfloat162* y, const __nv_bfloat162* a, const __nv_bfloat162* b,
                                int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  y[i] = __hfma2(a[i], b[i], a[i]);
  y[pairs + i] = __hmax2(a[i], b[i]);
  y[2 * pairs + i] = __hsub2(a[i], b[i]);
  y[3 * pairs + i] = __hmul2(a[i], b[i]);
  y[4 * pairs + i] = __habs2(b[i]);
}

// Between float, half, bfloat16 and whole numbers, with the roundings named.
__global__ void conversions(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  y[i] = __half2float(__float2half_rn(v));
  y[n + i] = __half2float(__float2half_rz(v));
  y[2 * n + i] = __half2float(__float2half_rd(v));
  y[3 * n + i] = __half2float(__float2half_ru(v));
  y[4 * n + i] = __bfloat162float(__float2bfloat16_rn(v));
  y[5 * n + i] = __bfloat162float(__float2bfloat16_rz(v));
  y[6 * n + i] = static_cast<float>(__half2int_rn(__float2half(v)));
  y[7 * n + i] = __half2float(__int2half_rn(static_cast<int>(v * 10)));
  y[8 * n + i] = static_cast<float>(__half2short_rd(__float2half(v)));
}

// float to 8 bits and back, e4m3 and e5m2; before sm_89 by integer arithmetic.
__global__ void float8(float* y, unsigned char* raw, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __nv_fp8_e4m3 a(x[i]);
  const __nv_fp8_e5m2 b(x[i]);
  y[i] = static_cast<float>(a);
  y[n + i] = static_cast<float>(b);
  raw[i] = a.__x;
  raw[n + i] = b.__x;
}
