// Elementwise kernels: one thread an element, or a few. What differs is how the addresses of a
// warp lie (the sectors that a load takes) and what arithmetic is done.

// y = x * x. One thread an element, the tail masked. 8 n bytes, n FLOPs.
__global__ void square(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}

// y = a * x + y. A grid smaller than the data walks it in strides. 12 n bytes, 2 n FLOPs.
__global__ void saxpy_grid_stride(float* y, const float* x, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = a * x[i] + y[i];
}

// y[i] = x[i * STRIDE]: a warp's load covers 32 * STRIDE words, so that min(STRIDE, 8) times the
// ideal number of sectors move.
template <int STRIDE>
__global__ void copy_strided(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i * STRIDE];
}

// y[i] = x[i + offset]: with an offset that is no multiple of 8 a warp's load touches a fifth
// sector.
__global__ void copy_offset(float* y, const float* x, int offset, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i + offset];
}

// y = x in 16-byte pieces, the last n % 4 elements one by one. 8 n bytes.
__global__ void copy_float4(float* y, const float* x, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 3 < n) {
    *reinterpret_cast<float4*>(y + i) = *reinterpret_cast<const float4*>(x + i);
  } else {
    for (int k = i; k < n; ++k) y[k] = x[k];
  }
}

// y = x + 1 with two 32-bit integers a load. 8 n bytes.
__global__ void increment_int2(int2* y, const int2* x, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  int2 v = x[i];
  ++v.x;
  ++v.y;
  y[i] = v;
}

struct Point {
  float x, y, z;
};

// length[i] = |p[i]| of an array of structures: each of three loads strides 12 bytes. 16 n bytes.
__global__ void length_aos(float* length, const Point* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) length[i] = sqrtf(p[i].x * p[i].x + p[i].y * p[i].y + p[i].z * p[i].z);
}

// The same of three arrays: every load is dense. 16 n bytes.
__global__ void length_soa(float* length, const float* x, const float* y, const float* z, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) length[i] = sqrtf(x[i] * x[i] + y[i] * y[i] + z[i] * z[i]);
}

// y[to[i]] = x[from[i]]: gather and scatter through two permutations.
__global__ void permute(float* y, const float* x, const int* from, const int* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[to[i]] = x[from[i]];
}

// y = GELU(x) by tanh, as in GPT-2. 8 n bytes.
__global__ void gelu_tanh(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  y[i] = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}

// y = GELU(x) by the error function. 8 n bytes.
__global__ void gelu_erf(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}

// RGBA bytes to floats in [0, 1]: one 4-byte load and one 16-byte store a pixel. 20 n bytes.
__global__ void unpack_rgba(float4* y, const uchar4* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const uchar4 v = x[i];
  y[i] = make_float4(v.x / 255.0f, v.y / 255.0f, v.z / 255.0f, v.w / 255.0f);
}

// y = op[i](x): an instruction code an element, so that a warp takes up to nine ways at a switch.
__global__ void interpret(float* y, const float* x, const int* op, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  switch (op[i]) {
    case 0: v = -v; break;
    case 1: v = v * v; break;
    case 2: v = fabsf(v); break;
    case 3: v = sqrtf(fabsf(v)); break;
    case 4: v = v + 1;  // and the next, too
    case 5: v = v * 3; break;
    case 6: v = floorf(v); break;
    case 7: v = v > 0 ? v : 0; break;
    case 8: v = 1 / (1 + v * v); break;
    case 9: v = copysignf(2, v); break;
    default: v = 42;
  }
  y[i] = v;
}

// Sine and cosine of large arguments: beyond 105615 the reduction by 2/pi in integers is taken,
// with its bits of 2/pi in local memory.
__global__ void sine_cosine(float* s, float* c, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    s[i] = sinf(x[i]);
    c[i] = cosf(x[i]);
  }
}

// The intrinsics with approximate results: sin, cos, exp, log2, power, division.
__global__ void intrinsics(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s, c;
  __sincosf(x[i], &s, &c);
  y[i] = s;
  y[n + i] = c;
  y[2 * n + i] = __expf(x[i]);
  y[3 * n + i] = __log2f(x[i] + 4);
  y[4 * n + i] = __powf(x[i] + 4, 1.5f);
  y[5 * n + i] = __fdividef(x[i], x[i] + 4);
  y[6 * n + i] = __frsqrt_rn(x[i] + 4);
  y[7 * n + i] = __saturatef(x[i]);
}

// A dozen functions of the mathematical library, a row of y each.
__global__ void library(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i], positive = fabsf(v) + 0.1f;
  float* out = y + i;
  const float values[12] = {expf(v),          logf(positive),   powf(positive, v), lgammaf(positive),
                            log1pf(positive), expm1f(v),        cbrtf(v),          erfcf(v),
                            atan2f(v, 1.5f),  tanf(v),          asinhf(v),         normcdff(v)};
#pragma unroll
  for (int k = 0; k < 12; ++k) out[k * n] = values[k];
}

// What rounds to whole numbers: rint, trunc, ceil, llrint, modf, fmod, remainder by parts.
__global__ void roundings(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  y[i] = rintf(v);
  y[n + i] = truncf(v);
  y[2 * n + i] = ceilf(v);
  y[3 * n + i] = roundf(v);
  y[4 * n + i] = static_cast<float>(static_cast<long long>(v * 1000));
  y[5 * n + i] = fmodf(v, 0.75f);
  y[6 * n + i] = static_cast<float>(static_cast<unsigned char>(fabsf(v)));
  y[7 * n + i] = __int_as_float(__float_as_int(v) & 0x7f800000);
}

// Quotients and remainders of 32 and 64 bits, by variable divisors (never 0) and by constants.
__global__ void divisions(long long* y, const long long* a, const long long* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int p = static_cast<int>(a[i]), q = static_cast<int>(b[i]) | 1;
  const unsigned u = static_cast<unsigned>(a[i]), v = static_cast<unsigned>(b[i]) | 1;
  const long long d = b[i] | 1;
  y[i] = p / q;
  y[n + i] = p % q;
  y[2 * n + i] = u / v;
  y[3 * n + i] = u % v;
  y[4 * n + i] = a[i] / d;
  y[5 * n + i] = a[i] % d;
  y[6 * n + i] = p / 7;
  y[7 * n + i] = u % 1000;
  y[8 * n + i] = a[i] / 97;
}

// High halves of products of 32 and 64 bits.
__global__ void products(long long* y, const long long* a, const long long* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = __mulhi(static_cast<int>(a[i]), static_cast<int>(b[i]));
  y[n + i] = __umulhi(static_cast<unsigned>(a[i]), static_cast<unsigned>(b[i]));
  y[2 * n + i] = __mul64hi(a[i], b[i]);
  y[3 * n + i] = static_cast<long long>(__umul64hi(a[i], b[i]));
  y[4 * n + i] = __mul24(static_cast<int>(a[i]), static_cast<int>(b[i]));
  y[5 * n + i] = static_cast<int>(__sad(static_cast<int>(a[i]) >> 2, static_cast<int>(b[i]) >> 2, 7));
}

// Bits: population, leading zeros, first set, reversal, permuted bytes, funnel shifts, fields.
__global__ void bit_tricks(int* y, const int* a, const int* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned p = a[i], q = b[i];
  y[i] = __popc(p);
  y[n + i] = __clz(p);
  y[2 * n + i] = __ffs(p);
  y[3 * n + i] = __brev(p);
  y[4 * n + i] = __byte_perm(p, q, 0x6420);
  y[5 * n + i] = __funnelshift_l(p, q, i);
  y[6 * n + i] = __funnelshift_r(p, q, i & 31);
  y[7 * n + i] = __popcll(static_cast<unsigned long long>(p) << 32 | q);
  y[8 * n + i] = __clzll(static_cast<long long>(p) & 0x00ffffff);
  y[9 * n + i] = (p ^ q) & ~(p & 0xff) | (q >> 3);
  y[10 * n + i] = p << (q & 7) >> 5;
  y[11 * n + i] = static_cast<int>(p) >> (q & 15);
}

// y[i] = sum over four bytes of a[i] * b[i], plus c[i]: signed and unsigned.
__global__ void dot_bytes(int* y, const int* a, const int* b, const int* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = __dp4a(a[i], b[i], c[i]);
  y[n + i] = __dp4a(static_cast<unsigned>(a[i]), static_cast<unsigned>(b[i]),
                    static_cast<unsigned>(c[i]));
}

// Heat after one step: a 7-point stencil, 3-D blocks and grid, cells at the border kept.
// 8 n bytes beyond the caches, 8 n FLOPs.
__global__ void stencil_3d(float* y, const float* x, int nx, int ny, int nz) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int j = blockIdx.y * blockDim.y + threadIdx.y;
  const int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i >= nx || j >= ny || k >= nz) return;
  const int at = (k * ny + j) * nx + i;
  const bool inner = i > 0 && j > 0 && k > 0 && i < nx - 1 && j < ny - 1 && k < nz - 1;
  float v = x[at];
  if (inner)
    v += 0.1f * (x[at - 1] + x[at + 1] + x[at - nx] + x[at + nx] + x[at - nx * ny] +
                 x[at + nx * ny] - 6 * v);
  y[at] = v;
}

// y[b] = the sum of a block's few elements, by its first thread: thousands of tiny blocks.
__global__ void tiny_blocks(int* y, const int* x, int each) {
  if (threadIdx.x) return;
  int sum = 0;
  for (int k = 0; k < each; ++k) sum += x[blockIdx.x * each + k];
  y[blockIdx.x] = sum;
}

// y = x * scale where the result is denormal: kept, or flushed to zero with -ftz=true.
__global__ void denormal_scale(float* y, const float* x, float scale, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * scale;
}

// y = fma, rounded four ways, and sums rounded towards each infinity.
__global__ void directed_rounding(float* y, const float* a, const float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = __fmaf_rn(a[i], b[i], a[i]);
  y[n + i] = __fmaf_rd(a[i], b[i], a[i]);
  y[2 * n + i] = __fmaf_ru(a[i], b[i], a[i]);
  y[3 * n + i] = __fmaf_rz(a[i], b[i], a[i]);
  y[4 * n + i] = __fadd_rd(a[i], b[i]);
  y[5 * n + i] = __fadd_ru(a[i], b[i]);
  y[6 * n + i] = __fdiv_rn(a[i], b[i]);
  y[7 * n + i] = __fsqrt_rn(fabsf(a[i]));
}
