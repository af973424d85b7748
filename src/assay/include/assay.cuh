// Device helpers for every .cu: conversions, 16-byte vectors, warp and block reductions.
//
// Compiles under NVRTC and under nvcc. Everything is in `namespace assay` but INFINITY and NAN,
// which NVRTC lacks. It includes cuda_fp16.h and cuda_bf16.h (0.04 s) and no other header, because
// <cuda/std/limits> alone would cost 0.8 s a build.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif

namespace assay {

// ---- numbers --------------------------------------------------------------------------------

// The type to compute in: double for double, float for everything narrower.
template <typename T>
struct Accumulator {
  using type = float;
};
template <>
struct Accumulator<double> {
  using type = double;
};
template <typename T>
using accumulator = typename Accumulator<T>::type;

// T to its accumulator: exact for every T.
__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ double to_float(double v) { return v; }
__device__ __forceinline__ float to_float(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }

// The accumulator back to T, rounded once, to nearest even: `y[i] = from_float<T>(v)`.
template <typename T>
__device__ __forceinline__ T from_float(accumulator<T> v) {
  return v;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float v) {
  return __float2half_rn(v);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float v) {
  return __float2bfloat16_rn(v);
}

// The larger one. A NaN loses against a number, as in fmax.
__device__ __forceinline__ float maximum(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double maximum(double a, double b) { return fmax(a, b); }

// e**v within about 1 ulp, subnormal results included (that is `expf`, not `__expf`).
__device__ __forceinline__ float exponential(float v) { return expf(v); }
__device__ __forceinline__ double exponential(double v) { return exp(v); }

__device__ __forceinline__ float logarithm(float v) { return logf(v); }
__device__ __forceinline__ double logarithm(double v) { return log(v); }
__device__ __forceinline__ float logarithm1p(float v) { return log1pf(v); }  // of 1 + v
__device__ __forceinline__ double logarithm1p(double v) { return log1p(v); }

// 2**v by hardware. Not __expf, which takes three more operations for results below 2^-126: here
// they are 0.
__device__ __forceinline__ float power_of_two(float v) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(v));
  return power;
}

// The logarithm to base 2 by hardware: within 2^-22, of itself outside of [0.5, 2] (PTX).
__device__ __forceinline__ float log2_of(float v) {
  float power;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(v));
  return power;
}

// For results that are stored in 2 bytes: hardware's exp and division, each within some 2^-21 of
// the result, where the store rounds to 2^-12 (half) or 2^-9 (bfloat16). Elsewhere the accurate
// ones. At 2 bytes an element it is arithmetic, not memory, that a long chain of accurate ones
// waits for.
template <typename T>
__device__ __forceinline__ accumulator<T> exponential_for(accumulator<T> v) {
  if constexpr (sizeof(T) == 2) {
    return power_of_two(v * 1.44269504f);
  } else {
    return exponential(v);
  }
}

// e**d of a difference d = a - b that was rounded when it was taken: by up to half a unit in its
// last place, which moves the result by |d| 2^-25 of itself. So by hardware for float too: the
// product with log2(e) moves it by no more than that, and ex2 itself by 2^-22. Below 2^-126 it is 0.
template <typename T>
__device__ __forceinline__ accumulator<T> exponential_of_difference(accumulator<T> d) {
  if constexpr (sizeof(T) == 8)
    return exponential(d);
  else
    return power_of_two(d * 1.44269504f);
}

// Hardware's reciprocal: 0 where it would be below 2^-126.
__device__ __forceinline__ float reciprocal(float v) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
  return inverse;
}

// 1 / v of 2^-126 <= v <= 2^126, and NaN of 0 and NaN: by hardware's reciprocal, which is within 2^-23
// of its own (PTX), and one step of Newton's method better. What is rounded as it should be is a call.
__device__ __forceinline__ float inverse_of(float v) {
  const float inverse = reciprocal(v);
  return fmaf(inverse, fmaf(-v, inverse, 1.0f), inverse);
}
__device__ __forceinline__ double inverse_of(double v) { return 1 / v; }

// v / n of a count n, within 1 ulp.
__device__ __forceinline__ float share_of(float v, int n) { return v * inverse_of(float(n)); }
__device__ __forceinline__ double share_of(double v, int n) { return v / n; }

// 1 / (1 + e**-v). Far below zero e**-v is inf and the result 0, far above 0 and 1.
template <typename T>
__device__ __forceinline__ accumulator<T> sigmoid_for(accumulator<T> v) {
  using A = accumulator<T>;
  const A e = exponential_for<T>(-v);
  if constexpr (sizeof(T) == 2)
    return 0.25f * reciprocal(0.25f * e + 0.25f);
  else
    return A(1) / (A(1) + e);
}

// ---- memory ---------------------------------------------------------------------------------

// N values that are loaded and stored as one: `Vec<float, 4>` is one 16-byte access. The address
// must be a multiple of its size, see `aligned`.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  static_assert((N & (N - 1)) == 0 && sizeof(T) * N <= 16, "one access moves at most 16 bytes");
  T data[N];
  __device__ __forceinline__ T& operator[](int i) { return data[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return data[i]; }
};

// How many T a thread can move in one access.
template <typename T>
inline constexpr int widest = 16 / int(sizeof(T));

template <int N, typename T>
__device__ __forceinline__ Vec<T, N> load(const T* p) {
  return *reinterpret_cast<const Vec<T, N>*>(p);
}
// To global memory. 8 and 16 bytes are written as words by one instruction, spelled out: what the
// compiler makes of eight halves of a struct is at times eight stores, and at times four. ONCE: of
// 16 bytes, which then leave the L2 cache first, to what will be read again (PTX ISA, st.cs).
template <bool ONCE = false, int N, typename T>
__device__ __forceinline__ void store(T* p, const Vec<T, N>& v) {
  if constexpr (sizeof(v) < 8) {
    *reinterpret_cast<Vec<T, N>*>(p) = v;
  } else {
    unsigned w[sizeof(v) / 4];
    memcpy(w, &v, sizeof(v));
    const auto at = __cvta_generic_to_global(p);
    if constexpr (sizeof(v) == 8)
      asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(w[0]), "r"(w[1]) : "memory");
    else if constexpr (ONCE)
      asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w[0]), "r"(w[1]),
                   "r"(w[2]), "r"(w[3])
                   : "memory");
    else
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w[0]), "r"(w[1]),
                   "r"(w[2]), "r"(w[3])
                   : "memory");
  }
}

// N values in T's accumulator, which were loaded as T or will be stored as T.
template <typename T, int N>
struct Wide {
  accumulator<T> data[N];
  __device__ __forceinline__ accumulator<T>& operator[](int i) { return data[i]; }
  __device__ __forceinline__ const accumulator<T>& operator[](int i) const { return data[i]; }
};

// Two halves in a word. Taken out of it one by one, each would cost a register and an instruction
// more: the compiler keeps a half in a word of its own.
template <typename T>
inline constexpr bool paired = false;
template <>
inline constexpr bool paired<__half> = true;
template <>
inline constexpr bool paired<__nv_bfloat16> = true;

__device__ __forceinline__ float2 pair_of(unsigned word, __half) {
  __half2 pair;
  memcpy(&pair, &word, sizeof(pair));
  return __half22float2(pair);
}
__device__ __forceinline__ float2 pair_of(unsigned word, __nv_bfloat16) {
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}
__device__ __forceinline__ unsigned word_of(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  unsigned word;
  memcpy(&word, &pair, sizeof(word));
  return word;
}
__device__ __forceinline__ unsigned word_of(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  unsigned word;
  memcpy(&word, &pair, sizeof(word));
  return word;
}

// 16 bytes as they lie in memory, and the values of T in them.
using Raw = Vec<unsigned, 4>;
template <typename T>
__device__ __forceinline__ Wide<T, widest<T>> widen(const Raw& raw) {
  Wide<T, widest<T>> wide;
  if constexpr (paired<T>) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const float2 pair = pair_of(raw[w], T());
      wide[2 * w] = pair.x;
      wide[2 * w + 1] = pair.y;
    }
  } else {
    Vec<T, widest<T>> v;
    memcpy(&v, &raw, sizeof(v));
#pragma unroll
    for (int j = 0; j < widest<T>; ++j) wide[j] = to_float(v[j]);
  }
  return wide;
}
template <typename T>
__device__ __forceinline__ Raw load_raw(const T* p) {
  return load<4>(reinterpret_cast<const unsigned*>(p));
}

// The same of what many blocks read, as weights of rows: it leaves the L2 cache last, before what
// streams through it once (PTX ISA, createpolicy; from sm_80 on).
template <typename T>
__device__ __forceinline__ Raw load_lasting(const T* p) {
#if __CUDA_ARCH__ >= 800
  unsigned long long last;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
  Raw raw;
  asm volatile("ld.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(raw[0]), "=r"(raw[1]), "=r"(raw[2]), "=r"(raw[3])
               : "l"(__cvta_generic_to_global(p)), "l"(last));
  return raw;
#else
  return load_raw(p);
#endif
}

// Rounded once, to T, and stored.
template <bool ONCE = false, typename T, int N>
__device__ __forceinline__ void store(T* p, const Wide<T, N>& wide) {
  if constexpr (paired<T> && N > 1) {
    Vec<unsigned, N / 2> words;
#pragma unroll
    for (int w = 0; w < N / 2; ++w) words[w] = word_of(wide[2 * w], wide[2 * w + 1], T());
    store<ONCE>(reinterpret_cast<unsigned*>(p), words);
  } else {
    Vec<T, N> v;
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = from_float<T>(wide[j]);
    store<ONCE>(p, v);
  }
}

// Bytes by which an address is beyond the last multiple of BYTES.
template <int BYTES = 16>
__device__ __forceinline__ int misaligned(const void* p) {
  return int(reinterpret_cast<unsigned long long>(p) % BYTES);
}
template <int BYTES = 16>
__device__ __forceinline__ bool aligned(const void* p) {
  return misaligned<BYTES>(p) == 0;
}

// ---- order of kernels -----------------------------------------------------------------------

// Until the kernel launched in front of this one has ended, and all that it wrote is seen (PTX ISA,
// griddepcontrol): what a kernel launched with `early=True` does first. Others do not wait.
__device__ __forceinline__ void await_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel take what room there is, if it was launched so, once all blocks of this one
// have said so or ended. It still waits for this one's end.
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- code ------------------------------------------------------------------------------------

template <int N>
struct Count {  // a number that a lambda can take as a constant
  static constexpr int value = N;
};
template <bool YES>
struct Flag {  // a condition, likewise
  __device__ __forceinline__ constexpr operator bool() const { return YES; }
};

// f(Flag<true>) or f(Flag<false>): two pieces of code, each without a jump over the other's. Asked
// again at each vector, the usual way leads past the rare one many times, and instructions come out
// of memory too, the first time.
template <typename F>
__device__ __forceinline__ void apart(bool condition, F f) {
  if (condition)
    f(Flag<true>{});
  else
    f(Flag<false>{});
}

// ---- reductions -----------------------------------------------------------------------------

struct Sum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return maximum(a, b);
  }
};

// Combines LANES neighbouring lanes; every lane gets the result. All 32 lanes must take part.
// The order is fixed, so equal inputs give equal bits.
template <int LANES = 32, typename T, typename Combine>
__device__ __forceinline__ T warp_reduce(T v, Combine combine) {
  static_assert(LANES >= 1 && LANES <= 32 && (LANES & (LANES - 1)) == 0, "a power of two");
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset /= 2)
    v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}

// Combines all threads of a block of BLOCK threads (one dimension); every thread gets the result.
// All of them must call it. It may be called again at once: it ends with a barrier.
template <int BLOCK, typename T, typename Combine>
__device__ __forceinline__ T block_reduce(T v, Combine combine) {
  constexpr int WARPS = BLOCK / 32;
  static_assert(BLOCK % 32 == 0 && WARPS <= 32 && (WARPS & (WARPS - 1)) == 0,
                "a block is 32, 64, ..., 1024 threads");
  v = warp_reduce(v, combine);
  if constexpr (WARPS > 1) {
    __shared__ T partial[WARPS];
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    // Each warp holds the partials 32/WARPS times over and combines one copy: no identity needed.
    v = warp_reduce<WARPS>(partial[threadIdx.x % WARPS], combine);
    __syncthreads();  // or the next call's writes could overtake this one's reads
  }
  return v;
}

}  // namespace assay
