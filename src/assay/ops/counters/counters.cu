// Counting x into slots by every integer atomic, and by the float ones.
//
// counters_start         what each row begins with
// counters_global        atomics on the result: threads of all blocks meet at one address
// counters_privatised    each block has the slots in shared memory, and merges them at the end
// float_counters_global  a sum by atomicAdd, the largest by atomicCAS; float_counters_privatised the
//                        same in shared memory first, then one of each for a block
//
// shapes  x, slot: n, slot in [0, slots); counters: (9, slots) ints; float_counters: (2, slots)
// bytes   8 * n (float, int), 12 * n (double)
// FLOPs   9 * n operations of integers, each an atomic; float_counters 2 * n of floats
#include "assay.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
#error "atomicAdd of a double needs compute capability 6.0; build this for sm_60 or above"
#endif

// Tries until nobody else came between reading and writing: any change can be made atomic so.
__device__ __forceinline__ void add_by_cas(int* at, int v) {
  int seen = *at, before;
  do {
    before = seen;
    seen = atomicCAS(at, before, before + v);
  } while (seen != before);
}

// The larger of two floats, by their bits: a value that is no larger leaves the loop at once.
__device__ __forceinline__ void max_by_cas(float* at, float v) {
  int* const bits = reinterpret_cast<int*>(at);
  int seen = *bits;
  while (__int_as_float(seen) < v) {
    const int before = seen;
    seen = atomicCAS(bits, before, __float_as_int(v));
    if (seen == before) return;
  }
}
__device__ __forceinline__ void max_by_cas(double* at, double v) {
  auto* const bits = reinterpret_cast<unsigned long long*>(at);
  unsigned long long seen = *bits;
  while (__longlong_as_double(static_cast<long long>(seen)) < v) {
    const unsigned long long before = seen;
    seen = atomicCAS(bits, before, static_cast<unsigned long long>(__double_as_longlong(v)));
    if (seen == before) return;
  }
}

__device__ __forceinline__ int start_of(int row) {
  return row == 2 ? int(0x80000000) : row == 3 ? 0x7fffffff : row == 4 ? -1 : 0;
}

// y: where row 0 has this slot; rows are `slots` apart.
__device__ __forceinline__ void count(int* y, int slots, int v) {
  atomicAdd(y + 0 * slots, v);
  atomicSub(y + 1 * slots, v);
  atomicMax(y + 2 * slots, v);
  atomicMin(y + 3 * slots, v);
  atomicAnd(y + 4 * slots, v);
  atomicOr(y + 5 * slots, v);
  atomicXor(y + 6 * slots, v);
  // Takes out what lies there and puts in its sum with v. What another thread put in meanwhile
  // comes out in turn, and has to go in again: nothing is lost, whoever comes first.
  int carried = v;
  while (carried != 0) carried = atomicExch(y + 7 * slots, carried + atomicExch(y + 7 * slots, 0));
  add_by_cas(y + 8 * slots, v);
}

extern "C" __global__ void counters_start(int* y, int slots) {
  const int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s < slots)
    for (int row = 0; row < 9; ++row) y[row * slots + s] = start_of(row);
}

extern "C" __global__ void counters_global(int* y, const int* x, const int* slot, long long n,
                                           int slots) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) count(y + slot[i], slots, x[i]);
}

extern "C" __global__ void __launch_bounds__(256)
    counters_privatised(int* y, const int* x, const int* slot, long long n, int slots) {
  extern __shared__ int own[];
  for (int s = threadIdx.x; s < 9 * slots; s += blockDim.x) own[s] = start_of(s / slots);
  __syncthreads();
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step)
    count(own + slot[i], slots, x[i]);
  __syncthreads();
  for (int s = threadIdx.x; s < slots; s += blockDim.x) {
    atomicAdd(y + 0 * slots + s, own[0 * slots + s]);
    atomicAdd(y + 1 * slots + s, own[1 * slots + s]);
    atomicMax(y + 2 * slots + s, own[2 * slots + s]);
    atomicMin(y + 3 * slots + s, own[3 * slots + s]);
    atomicAnd(y + 4 * slots + s, own[4 * slots + s]);
    atomicOr(y + 5 * slots + s, own[5 * slots + s]);
    atomicXor(y + 6 * slots + s, own[6 * slots + s]);
    atomicAdd(y + 7 * slots + s, own[7 * slots + s]);
    atomicAdd(y + 8 * slots + s, own[8 * slots + s]);
  }
}

template <typename T>
__global__ void float_counters_global(T* y, const T* x, const int* slot, long long n, int slots) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(y + slot[i], x[i]);
  max_by_cas(y + slots + slot[i], x[i]);
}

template <typename T>
__global__ void __launch_bounds__(256)
    float_counters_privatised(T* y, const T* x, const int* slot, long long n, int slots) {
  extern __shared__ double shared[];  // of doubles, so that it lies well for either type
  T* const own = reinterpret_cast<T*>(shared);
  for (int s = threadIdx.x; s < slots; s += blockDim.x) {
    own[s] = 0;
    own[slots + s] = -INFINITY;
  }
  __syncthreads();
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step) {
    atomicAdd(own + slot[i], x[i]);
    max_by_cas(own + slots + slot[i], x[i]);
  }
  __syncthreads();
  for (int s = threadIdx.x; s < slots; s += blockDim.x) {
    atomicAdd(y + s, own[s]);
    max_by_cas(y + slots + s, own[slots + s]);
  }
}
