// Kernels whose counts of requests, sectors and wavefronts are compared with a card's: what
// tests/simt/kernels does not have, and probes that do one access at addresses of a table.

// ---- ordinary kernels

// y = x in 8-byte pieces. 16 n bytes.
__global__ void copy_64(unsigned long long* y, const unsigned long long* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

// y = x byte by byte: one sector a warp. 2 n bytes.
__global__ void copy_bytes(unsigned char* y, const unsigned char* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

// Every thread draws a ticket from one counter and writes it: 32 lanes at one address.
__global__ void draw_tickets(int* y, int* counter, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = atomicAdd(counter + (x[i] >> 31), x[i]);
}

// sums[x[i] % bins] += i, the old values unused: contended by as many lanes as fall in a bin.
__global__ void add_to_bins(int* sums, const int* x, int bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sums + x[i] % bins, i);
}

// ---- probes: one warp, lane l at byte at[l] of the memory; the lanes of ~0 sit out

constexpr unsigned NONE = ~0u;
extern __shared__ __align__(16) unsigned char pool[];

template <class T>
__device__ T made_of(unsigned v) {
  if constexpr (sizeof(T) == 16)
    return T{v, v + 1, v + 2, v + 3};
  else if constexpr (sizeof(T) == 8)
    return T{v, v + 1};
  else
    return static_cast<T>(v);
}

template <class T>
__global__ void shared_load(T* out, const unsigned* at) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) out[threadIdx.x] = *reinterpret_cast<volatile T*>(pool + to);
}
template <>
__global__ void shared_load<uint2>(uint2* out, const unsigned* at) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) out[threadIdx.x] = *reinterpret_cast<uint2*>(pool + to);
}
template <>
__global__ void shared_load<uint4>(uint4* out, const unsigned* at) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) out[threadIdx.x] = *reinterpret_cast<uint4*>(pool + to);
}

template <class T>
__global__ void shared_store(const unsigned* at) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) *reinterpret_cast<T*>(pool + to) = made_of<T>(to);
}

template <class T>
__global__ void shared_atomic(T* out, const unsigned* at) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) out[threadIdx.x] = atomicAdd(reinterpret_cast<T*>(pool + to), T(threadIdx.x));
}

template <class T>
__global__ void shared_reduction(const unsigned* at) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) atomicAdd(reinterpret_cast<T*>(pool + to), T(threadIdx.x));
}

template <class T>
__global__ void global_load(T* out, const unsigned* at, const unsigned char* x) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) out[threadIdx.x] = *reinterpret_cast<const T*>(x + to);
}

template <class T>
__global__ void global_store(const unsigned* at, unsigned char* x) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) *reinterpret_cast<T*>(x + to) = made_of<T>(to);
}

template <class T>
__global__ void global_atomic(T* out, const unsigned* at, unsigned char* x) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) out[threadIdx.x] = atomicAdd(reinterpret_cast<T*>(x + to), T(threadIdx.x));
}

template <class T>
__global__ void global_reduction(const unsigned* at, unsigned char* x) {
  const unsigned to = at[threadIdx.x];
  if (to != NONE) atomicAdd(reinterpret_cast<T*>(x + to), T(threadIdx.x));
}
