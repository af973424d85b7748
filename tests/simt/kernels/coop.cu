// Cooperative groups: tiles, coalesced threads, reductions and scans of groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

// partial[tile] = sum of each tile of 16 lanes, by a shuffle loop of the tile.
__global__ void tile_sums(int* partial, const int* x) {
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 8; step > 0; step /= 2) v += tile.shfl_down(v, step);
  if (tile.thread_rank() == 0)
    partial[blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = v;
}

// Sum and largest value of a block by cg::reduce in warps, then over the warps.
__global__ void group_reduce(int* y, const int* x, int n) {
  __shared__ int sums[4], most[4];
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const auto four = cg::tiled_partition<4>(block);
  const int i = blockIdx.x * 128 + threadIdx.x, v = i < n ? x[i] : 0;
  const int sum = cg::reduce(warp, v, cg::plus<int>());
  const int high = cg::reduce(warp, v, cg::greater<int>());
  if (warp.thread_rank() == 0) {
    sums[warp.meta_group_rank()] = sum;
    most[warp.meta_group_rank()] = high;
  }
  block.sync();
  if (block.thread_rank() < 4) {
    const int all = cg::reduce(four, sums[four.thread_rank()], cg::plus<int>());
    const int top = cg::reduce(four, most[four.thread_rank()], cg::greater<int>());
    if (four.thread_rank() == 0) {
      y[2 * blockIdx.x] = all;
      y[2 * blockIdx.x + 1] = top;
    }
  }
}

// Positive elements packed to the front: one atomic a group of lanes that are in the branch.
__global__ void aggregated(int* y, int* count, const int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0) {
    const auto group = cg::coalesced_threads();
    int base;
    if (group.thread_rank() == 0) base = atomicAdd(count, group.size());
    y[group.shfl(base, 0) + group.thread_rank()] = x[i];
  }
}

// Inclusive and exclusive scans of tiles of 8 lanes.
__global__ void tile_scans(int* y, const int* x) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const int v = x[threadIdx.x];
  y[threadIdx.x] = cg::inclusive_scan(tile, v, cg::plus<int>());
  y[64 + threadIdx.x] = cg::exclusive_scan(tile, v, cg::plus<int>());
}

// Ballots, votes and neighbours of a tile; groups of lanes with one label.
__global__ void tile_votes(int* y, const int* x) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int v = x[threadIdx.x];
  const auto same = cg::labeled_partition(tile, v & 3);
  y[threadIdx.x] = same.size();
  y[64 + threadIdx.x] = same.thread_rank();
  const auto odd = cg::binary_partition(tile, (v & 1) != 0);
  y[128 + threadIdx.x] = odd.size();
  y[192 + threadIdx.x] = tile.any(v > 50) + 2 * tile.all(v > -1000) + 4 * (tile.ballot(v > 0) >> 28);
}

// Columns summed through shared memory, with the block's barrier and tiles' barriers as groups.
__global__ void group_barriers(int* y, const int* x, int rounds) {
  __shared__ int kept[64];
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  const int t = block.thread_rank(), base = t / 16 * 16;
  kept[t] = x[t];
  tile.sync();
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    const int v = kept[base + (t + 3) % 16];
    tile.sync();
    kept[t] = v + r;
    tile.sync();
  }
  block.sync();
  y[t] = kept[63 - t];
}
