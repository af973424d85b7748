// Constant, local, shared and global memory in the ways that programs use them.

__constant__ float weights[5] = {1, 4, 6, 4, 1};
__constant__ int table[64];
__device__ int total;
__device__ const int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};

// y[i] = binomial average of five neighbours, borders clamped, weights in constant memory.
__global__ void smooth(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 5; ++k) {
    const int at = i + k - 2;
    sum += weights[k] * x[at < 0 ? 0 : at >= n ? n - 1 : at];
  }
  y[i] = sum / 16;
}

// y[i] = table[x[i]] of constant memory that the host fills, index by data.
__global__ void look_up(int* y, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = table[x[i] & 63] + primes[i & 7];
}

// A counter that belongs to the module.
__global__ void count_in_module(int* y) {
  const int before = atomicAdd(&total, 2);
  y[before / 2] = 1;
}

// The 8 smallest of each thread's values in a local array that is kept in order by insertion.
__global__ void smallest_eight(int* y, const int* x, int each) {
  int kept[8];
  for (int k = 0; k < 8; ++k) kept[k] = 2147483647;
  for (int i = 0; i < each; ++i) {
    const int v = x[i * 64 + threadIdx.x];
    int at = 8;
    while (at > 0 && kept[at - 1] > v) --at;
    for (int k = 7; k > at; --k) kept[k] = kept[k - 1];
    if (at < 8) kept[at] = v;
  }
  for (int k = 0; k < 8; ++k) y[k * 64 + threadIdx.x] = kept[k];
}

// A histogram a thread in local memory, indexed by data. 16 bins.
__global__ void local_histogram(int* y, const unsigned char* x, int each) {
  unsigned char bins[16];
  memset(bins, 0, sizeof bins);
  for (int i = 0; i < each; ++i) ++bins[x[i * 32 + threadIdx.x] & 15];
  for (int k = 0; k < 16; ++k) y[k * 32 + threadIdx.x] = bins[k];
}

struct Particle {
  float position[3];
  short kind;
  char tag[6];
  double mass;
};

// Structures copied as wholes and by memcpy, through local memory. 32 bytes each.
__global__ void move_particles(Particle* y, const Particle* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Particle p[2];
  memset(p, 0, sizeof p);
  memcpy(&p[i & 1], x + i, sizeof(Particle));
  Particle& own = p[i & 1];
  own.position[i % 3] += static_cast<float>(own.mass);
  own.tag[i % 6] = static_cast<char>(own.kind);
  own.mass = p[(i & 1) ^ 1].mass + 2 * own.mass;
  y[i] = own;
}

// Static and dynamic shared memory side by side; the dynamic part is carved into three arrays of
// falling alignment.
__global__ void carved(double* y, const float* x, int n) {
  extern __shared__ double carve[];
  __shared__ float first[32];
  double* d = carve;
  float* f = reinterpret_cast<float*>(d + n);
  unsigned char* c = reinterpret_cast<unsigned char*>(f + n);
  const int t = threadIdx.x;
  if (t < 32) first[t] = x[t];
  if (t < n) {
    d[t] = x[t] * 0.5;
    f[t] = x[t] + 1;
    c[t] = static_cast<unsigned char>(t * 3);
  }
  __syncthreads();
  if (t < n) y[t] = d[n - 1 - t] + f[(t + 1) % n] + c[(t + 2) % n] + first[t & 31];
}

// Reads columns of a shared tile: STEP words from lane to lane, so gcd(STEP, 32) lanes a bank.
template <int STEP>
__global__ void bank_conflicts(float* y, const float* x) {
  __shared__ float words[32 * STEP];
  for (int k = threadIdx.x; k < 32 * STEP; k += 32) words[k] = x[k];
  __syncwarp();
  y[threadIdx.x] = words[threadIdx.x * STEP];
}

// 16-byte accesses of shared memory: a quarter of a warp at a time.
__global__ void shared_float4(float4* y, const float4* x) {
  __shared__ float4 kept[64];
  kept[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = kept[threadIdx.x ^ 5];
}

// Loads through the read-only cache, with cache hints, volatile; int4 copies.
__global__ void hints(int4* y, const int4* x, const int* __restrict__ extra, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int4 v = __ldg(x + i);
  v.x += __ldcs(extra + i) + __ldca(extra + i);
  v.y += __ldcg(extra + i);
  v.z += *static_cast<const volatile int*>(extra + i);
  v.w += __ldlu(extra + i) + __ldcv(extra + i);
  __stcs(y + i, v);
}

// Exchange by volatile words within one warp, as old code does it, with the fences it needs.
__global__ void volatile_tree(int* y, const int* x) {
  __shared__ volatile int tree[32];
  const int t = threadIdx.x;
  tree[t] = x[blockIdx.x * 32 + t];
  for (int half = 16; half > 0; half /= 2) {
    __syncwarp();
    const int other = tree[(t + half) & 31];
    __syncwarp();
    tree[t] = tree[t] + other;
  }
  if (t == 0) y[blockIdx.x] = tree[0];
}

struct Buffers {
  const float* in[3];
  float* out;
  int n;
  float scale[3];
};

// y = sum of scaled inputs; all pointers in one structure by value, chosen by an index.
__global__ void gather_buffers(Buffers b) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= b.n) return;
  float sum = 0;
  for (int k = 0; k < 3; ++k) sum += b.scale[(i + k) % 3] * b.in[(i + k) % 3][i];
  b.out[i] = sum;
}

// Rows of a table of pointers that lies in global memory.
__global__ void table_of_pointers(int* y, const int* const* rows, int columns) {
  const int* row = rows[blockIdx.x];
  for (int c = threadIdx.x; c < columns; c += blockDim.x) y[blockIdx.x * columns + c] = row[c] * 2;
}

// A scratch of each thread in global memory, written before it is read, unlike the rest of it.
__global__ void scratch(float* y, float* work, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int k = 0; k < 3; ++k) work[k * n + i] = x[i] * (k + 1);
  float sum = 0;
  for (int k = 0; k < 3; ++k) sum += work[k * n + i];
  y[i] = sum;
}
