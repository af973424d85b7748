// What the lanes of a warp do together, and where they part ways.

// All four kinds of shuffle, widths of 8, 16 and 32, and a partial mask.
__global__ void shuffles(int* y, const int* x) {
  const int lane = threadIdx.x, v = x[lane];
  y[lane] = __shfl_sync(~0u, v, lane * 7 + 3);
  y[32 + lane] = __shfl_up_sync(~0u, v, 3);
  y[64 + lane] = __shfl_down_sync(~0u, v, 5);
  y[96 + lane] = __shfl_xor_sync(~0u, v, 21);
  y[128 + lane] = __shfl_sync(~0u, v, 2, 8);
  y[160 + lane] = __shfl_up_sync(~0u, v, 2, 16);
  y[192 + lane] = __shfl_down_sync(~0u, v, 3, 8);
  y[224 + lane] = __shfl_xor_sync(~0u, v, 3, 8);
  if (lane & 1) {
    y[256 + lane] = __shfl_sync(0xaaaaaaaa, v, (lane + 2) & 31);
  } else {
    y[256 + lane] = __shfl_xor_sync(0x55555555, v, 4);
  }
  const double d = __shfl_down_sync(~0u, 0.5 * v, 1);
  y[288 + lane] = static_cast<int>(2 * d);
  const long long w = __shfl_xor_sync(~0u, static_cast<long long>(v) << 33 | lane, 1);
  y[320 + lane] = static_cast<int>(w >> 33) + static_cast<int>(w & 0xff);
}

// Votes and matches: ballot, any, all, match.any, match.all, activemask in a branch.
__global__ void votes(unsigned* y, const int* x) {
  const int lane = threadIdx.x, v = x[lane];
  y[lane] = __ballot_sync(~0u, v > 0);
  y[32 + lane] = __any_sync(~0u, v == 3) | __all_sync(~0u, v < 100) << 1;
  y[64 + lane] = __match_any_sync(~0u, v & 3);
  int all;
  y[96 + lane] = __match_all_sync(~0u, v & 64, &all);
  y[96 + lane] += all;
  if (v & 1) {
    y[128 + lane] = __ballot_sync(__activemask(), v > 5);
  } else {
    y[128 + lane] = __match_any_sync(__activemask(), static_cast<long long>(v) << 32);
  }
}

// redux.sync: add, min, max, and, or, xor, in both halves of a branch.
__global__ void reductions(int* y, const int* x) {
  const int lane = threadIdx.x, v = x[lane];
  const unsigned mask = lane < 12 ? 0xfff : 0xfffff000;
  int add, least;
  if (lane < 12) {
    add = __reduce_add_sync(mask, v);
    least = __reduce_min_sync(mask, v);
  } else {
    add = __reduce_add_sync(mask, 2 * v);
    least = __reduce_max_sync(mask, v);
  }
  y[lane] = add;
  y[32 + lane] = least;
  y[64 + lane] = __reduce_and_sync(~0u, static_cast<unsigned>(v));
  y[96 + lane] = __reduce_or_sync(~0u, static_cast<unsigned>(v));
  y[128 + lane] = __reduce_xor_sync(~0u, static_cast<unsigned>(v));
}

// Steps of Collatz until 1: a loop as long as each lane needs.
__global__ void collatz(int* steps, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long v = x[i];
  int count = 0;
  while (v != 1) {
    v = v & 1 ? 3 * v + 1 : v / 2;
    ++count;
  }
  steps[i] = count;
}

// Nested loops with break, continue and goto, all by data.
__global__ void nested_ways(int* y, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int v = x[i];
  int sum = 0;
  for (int a = 0; a < 7; ++a) {
    if ((v + a) % 3 == 0) continue;
    for (int b = 0; b < v % 9; ++b) {
      if (b == a) break;
      if ((b * v) % 5 == 2) continue;
      if (sum > 60) goto enough;
      sum += b + 1;
      int c = v & 7;
      do {
        sum += c & 1;
        if (c == 5) break;
      } while (--c > 0);
    }
  }
  sum = -sum;
enough:
  y[i] = sum;
}

// Iterations until |z| > 2, at most 64, escape orders differ from lane to lane.
__global__ void mandelbrot(int* y, int width, int height) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width * height) return;
  const float cr = -2 + 3.0f * (i % width) / width, ci = -1 + 2.0f * (i / width) / height;
  float zr = 0, zi = 0;
  int k = 0;
  for (; k < 64 && zr * zr + zi * zi <= 4; ++k) {
    const float next = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = next;
  }
  y[i] = k;
}

// A 32 x 32 tile transposed in registers: five rounds of shuffles and selections.
__global__ void warp_transpose(int* y, const int* x) {
  const int lane = threadIdx.x;
  int v[32];
#pragma unroll
  for (int r = 0; r < 32; ++r) v[r] = x[r * 32 + lane];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
#pragma unroll
    for (int r = 0; r < 32; ++r) {
      if (r & step) continue;
      const bool low = (lane & step) == 0;
      const int given = __shfl_xor_sync(~0u, low ? v[r + step] : v[r], step);
      if (low)
        v[r + step] = given;
      else
        v[r] = given;
    }
  }
#pragma unroll
  for (int r = 0; r < 32; ++r) y[r * 32 + lane] = v[r];
}

// 32 keys a warp in order by a bitonic network of shuffles.
__global__ void warp_sort(float* x) {
  const int lane = threadIdx.x & 31;
  float v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int size = 2; size <= 32; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(~0u, v, step);
      const bool up = (lane & size) == 0, low = (lane & step) == 0;
      v = (low == up) ? fminf(v, other) : fmaxf(v, other);
    }
  x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

// y[i] = sum of the run of equal keys up to i within a warp: a segmented scan.
__global__ void segmented_scan(int* y, const int* key, const int* x) {
  const int lane = threadIdx.x & 31, i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = x[i];
  const int k = key[i];
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(~0u, v, step), its = __shfl_up_sync(~0u, k, step);
    if (lane >= step && its == k) v += before;
  }
  y[i] = v;
}

// Threads beyond n leave before the barrier that the others meet at: a barrier counts those that
// are left.
__global__ void leave_early(int* y, const int* x, int n) {
  __shared__ int kept[128];
  if (threadIdx.x >= n) return;
  kept[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = kept[n - 1 - threadIdx.x];
}

// Two halves of a block work on their own behind named barriers of 64 threads, and meet at the
// end.
__global__ void named_barriers(int* y, const int* x) {
  __shared__ int kept[128];
  const int t = threadIdx.x, half = t / 64, own = t % 64;
  kept[t] = x[t];
#pragma unroll 1
  for (int round = 0; round < 3; ++round) {
    if (half == 0)
      asm volatile("bar.sync 1, 64;" ::: "memory");
    else
      asm volatile("bar.sync 2, 64;" ::: "memory");
    const int v = kept[half * 64 + (own + 37) % 64];
    if (half == 0)
      asm volatile("bar.sync 1, 64;" ::: "memory");
    else
      asm volatile("bar.sync 2, 64;" ::: "memory");
    kept[t] = v + round;
  }
  __syncthreads();
  y[t] = kept[127 - t];
}

// One warp fills a buffer, the other empties it: bar.arrive on one side, bar.sync on the other.
__global__ void producer_consumer(int* y, const int* x, int rounds) {
  __shared__ int buffer[32];
  const int lane = threadIdx.x & 31;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    if (threadIdx.x < 32) {
      buffer[lane] = x[r * 32 + lane] + 1;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      y[r * 32 + lane] = buffer[31 - lane];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
}

// A ring of 32 words passed round by one warp: __syncwarp between reading and writing.
__global__ void ring(int* y, const int* x, int rounds) {
  __shared__ int word[32];
  const int lane = threadIdx.x;
  word[lane] = x[lane];
  __syncwarp();
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    const int v = word[(lane + 1) & 31];
    __syncwarp();
    word[lane] = v + r;
    __syncwarp();
  }
  y[lane] = word[31 - lane];
}

// Cells of Conway's life on a torus of 16 x 16, a thread a cell, some steps; the end upside down.
__global__ void life(int* x, int steps) {
  __shared__ int cell[16][16];
  const int i = threadIdx.y, j = threadIdx.x;
  cell[i][j] = x[i * 16 + j];
  __syncthreads();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    int near = -cell[i][j];
    for (int k = 0; k < 9; ++k) near += cell[(i + k / 3 + 15) % 16][(j + k % 3 + 15) % 16];
    const int next = near == 3 || (near == 2 && cell[i][j]);
    __syncthreads();
    cell[i][j] = next;
    __syncthreads();
  }
  x[i * 16 + j] = cell[15 - i][15 - j];
}
