// Prefix sums, sorting and compaction: by hand, and by CUB's block and warp primitives.
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

// Inclusive sums of each block's 128 values, Hillis and Steele: log2(128) steps over two buffers.
__global__ void scan_hillis_steele(int* y, const int* x, int n) {
  __shared__ int buffer[2][128];
  const int t = threadIdx.x, i = blockIdx.x * 128 + t;
  int from = 0;
  buffer[0][t] = i < n ? x[i] : 0;
  __syncthreads();
#pragma unroll 1
  for (int step = 1; step < 128; step *= 2) {
    const int to = from ^ 1;
    buffer[to][t] = buffer[from][t] + (t >= step ? buffer[from][t - step] : 0);
    from = to;
    __syncthreads();
  }
  if (i < n) y[i] = buffer[from][t];
}

// Exclusive sums of each block's 256 values, Blelloch: up the tree, then down. 2 n additions.
__global__ void scan_blelloch(int* y, const int* x, int n) {
  __shared__ int tree[256];
  const int t = threadIdx.x, base = blockIdx.x * 256;
  for (int k = t; k < 256; k += 128) tree[k] = base + k < n ? x[base + k] : 0;
#pragma unroll 1
  for (int step = 1, nodes = 128; nodes > 0; nodes /= 2, step *= 2) {
    __syncthreads();
    if (t < nodes) tree[step * (2 * t + 2) - 1] += tree[step * (2 * t + 1) - 1];
  }
  if (t == 0) tree[255] = 0;
#pragma unroll 1
  for (int step = 128, nodes = 1; nodes < 256; nodes *= 2, step /= 2) {
    __syncthreads();
    if (t < nodes) {
      int& left = tree[step * (2 * t + 1) - 1];
      int& right = tree[step * (2 * t + 2) - 1];
      const int kept = left;
      left = right;
      right += kept;
    }
  }
  __syncthreads();
  for (int k = t; k < 256; k += 128)
    if (base + k < n) y[base + k] = tree[k];
}

// Inclusive sums of a block by warps: shfl_up in each, their sums scanned by the first warp.
__global__ void scan_shuffle(int* y, const int* x, int n) {
  __shared__ int of_warp[8];
  const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  int v = i < n ? x[i] : 0;
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(~0u, v, step);
    if (lane >= step) v += before;
  }
  if (lane == 31) of_warp[warp] = v;
  __syncthreads();
  if (threadIdx.x < 8) {
    int sum = of_warp[threadIdx.x];
    for (int step = 1; step < 8; step *= 2) {
      const int before = __shfl_up_sync(0xff, sum, step, 8);
      if (threadIdx.x >= step) sum += before;
    }
    of_warp[threadIdx.x] = sum;
  }
  __syncthreads();
  if (i < n) y[i] = v + (warp ? of_warp[warp - 1] : 0);
}

// 256 keys in order by a bitonic network in shared memory: 36 compare-exchange steps.
__global__ void sort_bitonic(int* x) {
  __shared__ int key[256];
  const int t = threadIdx.x;
  key[t] = x[blockIdx.x * 256 + t];
#pragma unroll 1
  for (int size = 2; size <= 256; size *= 2)
#pragma unroll 1
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      const int other = t ^ step;
      if (other > t) {
        const int a = key[t], b = key[other];
        if ((a > b) == ((t & size) == 0)) {
          key[t] = b;
          key[other] = a;
        }
      }
    }
  __syncthreads();  // the last exchange of key[t] may be the neighbour's
  x[blockIdx.x * 256 + t] = key[t];
}

// y = the positive elements of x, in order, and their number: ballots and a scan, one block.
__global__ void compact(int* y, int* count, const int* x, int n) {
  __shared__ int of_warp[4];
  __shared__ int base;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (threadIdx.x == 0) base = 0;
#pragma unroll 1
  for (int start = 0; start < n; start += 128) {
    const int i = start + threadIdx.x;
    const int v = i < n ? x[i] : 0;
    const unsigned kept = __ballot_sync(~0u, v > 0);
    if (lane == 0) of_warp[warp] = __popc(kept);
    __syncthreads();
    int at = base + __popc(kept & ((1u << lane) - 1));
    for (int w = 0; w < warp; ++w) at += of_warp[w];
    const int all = of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3];
    if (v > 0) y[at] = v;
    __syncthreads();
    if (threadIdx.x == 0) base += all;
  }
  if (threadIdx.x == 0) *count = base;
}

// CUB: blocked load through shared memory, inclusive scan, store back in stripes.
__global__ void cub_scan(int* y, const int* x, int n) {
  using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 64>;
  using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Scan::TempStorage scan;
    typename Store::TempStorage store;
  } shared;
  int v[4];
  Load(shared.load).Load(x, v, n, 0);
  __syncthreads();
  Scan(shared.scan).InclusiveSum(v, v);
  __syncthreads();
  Store(shared.store).Store(y, v, n);
}

struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

// CUB: sums and largest values of blocks of 96, by shuffles in warps and by raking.
__global__ void cub_reduce(float* y, const float* x, int n) {
  using Warps = cub::BlockReduce<float, 96, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using Rake = cub::BlockReduce<float, 96, cub::BLOCK_REDUCE_RAKING>;
  __shared__ typename Warps::TempStorage warps;
  __shared__ typename Rake::TempStorage rake;
  const int i = blockIdx.x * 96 + threadIdx.x;
  const int valid = n - blockIdx.x * 96 < 96 ? n - blockIdx.x * 96 : 96;
  const float v = i < n ? x[i] : 0;
  const float sum = Warps(warps).Sum(v, valid);
  const float most = Rake(rake).Reduce(v, Larger(), valid);
  if (threadIdx.x == 0) {
    y[2 * blockIdx.x] = sum;
    y[2 * blockIdx.x + 1] = most;
  }
}

// CUB: radix sort of 64 threads' 4 pairs, keys of 32 bits, stable.
__global__ void cub_radix_sort(unsigned* key, int* value) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 4, int>;
  __shared__ typename Sort::TempStorage shared;
  unsigned k[4];
  int v[4];
  for (int j = 0; j < 4; ++j) {
    k[j] = key[threadIdx.x * 4 + j];
    v[j] = value[threadIdx.x * 4 + j];
  }
  Sort(shared).Sort(k, v);
  for (int j = 0; j < 4; ++j) {
    key[threadIdx.x * 4 + j] = k[j];
    value[threadIdx.x * 4 + j] = v[j];
  }
}

struct Less {
  __device__ bool operator()(float a, float b) const { return a < b; }
};

// CUB: merge sort of 64 threads' 3 floats.
__global__ void cub_merge_sort(float* x) {
  using Sort = cub::BlockMergeSort<float, 64, 3>;
  __shared__ typename Sort::TempStorage shared;
  float v[3];
  for (int j = 0; j < 3; ++j) v[j] = x[threadIdx.x * 3 + j];
  Sort(shared).Sort(v, Less());
  for (int j = 0; j < 3; ++j) x[threadIdx.x * 3 + j] = v[j];
}

// CUB: sums and inclusive scans of groups of 16 lanes.
__global__ void cub_warp(int* sum, int* scan, const int* x) {
  using Reduce = cub::WarpReduce<int, 16>;
  using Scan = cub::WarpScan<int, 16>;
  __shared__ typename Reduce::TempStorage reduce[4];
  __shared__ typename Scan::TempStorage inclusive[4];
  const int group = threadIdx.x / 16, v = x[threadIdx.x];
  const int all = Reduce(reduce[group]).Sum(v);
  if (threadIdx.x % 16 == 0) sum[group] = all;
  int before;
  Scan(inclusive[group]).InclusiveSum(v, before);
  scan[threadIdx.x] = before;
}

// CUB: flags where a run begins, and a histogram by sorting.
__global__ void cub_runs(int* heads, unsigned* count, const unsigned char* x) {
  using Runs = cub::BlockDiscontinuity<unsigned char, 64>;
  using Histogram = cub::BlockHistogram<unsigned char, 64, 2, 16, cub::BLOCK_HISTO_ATOMIC>;
  __shared__ typename Runs::TempStorage runs;
  __shared__ typename Histogram::TempStorage histogram;
  __shared__ unsigned bins[16];
  unsigned char v[2] = {x[2 * threadIdx.x], x[2 * threadIdx.x + 1]};
  int head[2];
  Runs(runs).FlagHeads(head, v, cuda::std::not_equal_to<>());
  heads[2 * threadIdx.x] = head[0];
  heads[2 * threadIdx.x + 1] = head[1];
  Histogram(histogram).Histogram(v, bins);
  __syncthreads();
  if (threadIdx.x < 16) count[threadIdx.x] = bins[threadIdx.x];
}

// CUB: 64 threads' 4 values from stripes to blocks and back through shared memory.
__global__ void cub_exchange(int* y, const int* x) {
  using Exchange = cub::BlockExchange<int, 64, 4>;
  __shared__ typename Exchange::TempStorage shared;
  int v[4];
  for (int j = 0; j < 4; ++j) v[j] = x[j * 64 + threadIdx.x];
  Exchange(shared).StripedToBlocked(v, v);
  for (int j = 0; j < 4; ++j) y[threadIdx.x * 4 + j] = v[j] + j;
}
