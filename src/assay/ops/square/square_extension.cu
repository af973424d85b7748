// y = x * x and dx = 2 x dy, the CUDA half of square_extension.cpp: one thread an element, on
// torch's own stream.
//
// shapes  x, y, dx, dy: n elements, contiguous, of one dtype; checked by the caller
// bytes   2 * n * sizeof(T); the gradient 3
// FLOPs   n; the gradient 2 * n
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <type_traits>

namespace {

constexpr int BLOCK = 256;

template <typename T>
__global__ void __launch_bounds__(BLOCK) square_kernel(T* y, const T* x, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i >= n) return;
  if constexpr (std::is_integral_v<T>) {
    const auto v = static_cast<uint64_t>(x[i]);  // unsigned: wraps around as torch's does
    y[i] = static_cast<T>(v * v);
  } else {
    const auto v = static_cast<at::opmath_type<T>>(x[i]);
    y[i] = static_cast<T>(v * v);
  }
}

template <typename T>
__global__ void __launch_bounds__(BLOCK) slope_kernel(T* dx, const T* dy, const T* x, int64_t n) {
  using A = at::opmath_type<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i < n) dx[i] = static_cast<T>(A(2) * (A(x[i]) * A(dy[i])));
}

}  // namespace

void square_cuda(at::Tensor& y, const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());  // x may live on another GPU than the current one
  const int64_t n = x.numel();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "square_cuda", [&] {
    square_kernel<scalar_t><<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(
        y.mutable_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

void square_grad_cuda(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t n = x.numel();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "square_grad", [&] {
    slope_kernel<scalar_t><<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(
        dx.mutable_data_ptr<scalar_t>(), dy.const_data_ptr<scalar_t>(),
        x.const_data_ptr<scalar_t>(), n);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}
