// y = softmax(x) over the last dimension, the CUDA half of softmax_extension.cpp: one block a row,
// online (see softmax.cu), one element an access, on torch's own stream.
//
// shapes  x, y: (rows, n), contiguous, of one floating dtype; checked by the caller
// bytes   2 * rows * n * sizeof(T): the second walk finds a row in a cache, if it fits
// FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide); three exps are done
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <limits>

namespace {

constexpr int BLOCK = 256;
constexpr int WARPS = BLOCK / 32;

// The largest value so far, and the sum of exp(v - shift()) over what was seen. A NaN never becomes
// `top` but always enters `sum`; while all was -inf there is no shift, so that exp is 0, not NaN.
template <typename A>
struct Online {
  A top, sum;
  __device__ A shift() const { return top == -std::numeric_limits<A>::infinity() ? A(0) : top; }
  __device__ Online with(const Online& other) const {
    Online both{other.top > top ? other.top : top, 0};
    both.sum = sum * std::exp(top - both.shift()) + other.sum * std::exp(other.top - both.shift());
    return both;
  }
};

template <typename A>
__device__ Online<A> over_warp(Online<A> mine, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    mine = mine.with({__shfl_xor_sync(0xffffffffu, mine.top, offset),
                      __shfl_xor_sync(0xffffffffu, mine.sum, offset)});
  }
  return mine;
}

template <typename T>
__global__ void __launch_bounds__(BLOCK) softmax_kernel(T* y, const T* x, int64_t n) {
  using A = at::opmath_type<T>;
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  Online<A> mine{-std::numeric_limits<A>::infinity(), 0};
  for (int64_t i = threadIdx.x; i < n; i += BLOCK) mine = mine.with({static_cast<A>(x[i]), A(1)});

  __shared__ A tops[WARPS], sums[WARPS];
  mine = over_warp(mine, 32);
  if (threadIdx.x % 32 == 0) {
    tops[threadIdx.x / 32] = mine.top;
    sums[threadIdx.x / 32] = mine.sum;
  }
  __syncthreads();
  // Each warp holds the WARPS results several times over and combines one copy.
  mine = over_warp(Online<A>{tops[threadIdx.x % WARPS], sums[threadIdx.x % WARPS]}, WARPS);

  const A shift = mine.shift();
  for (int64_t i = threadIdx.x; i < n; i += BLOCK)
    y[i] = static_cast<T>(std::exp(static_cast<A>(x[i]) - shift) / mine.sum);
}

}  // namespace

void softmax_cuda(at::Tensor& y, const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());  // x may live on another GPU than the current one
  const int64_t n = x.size(-1), rows = x.numel() / n;
  const auto stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "softmax_cuda", [&] {
    softmax_kernel<scalar_t><<<rows, BLOCK, 0, stream>>>(
        y.mutable_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}
