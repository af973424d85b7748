// y = c[0] + c[1] x + ... and dx = dy p'(x), the CUDA half of polynomial_extension.cpp: one thread
// an element, on torch's own stream.
//
// shapes  y, x, dx, dy: n elements; c: terms coefficients; contiguous; checked by the caller
// bytes   2 * n * sizeof(T); the gradient 3 * n * sizeof(T)
// FLOPs   2 * n * (terms - 1); the gradient n * (3 * terms - 4)
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

namespace {

constexpr int BLOCK = 256;

template <typename T>
__global__ void __launch_bounds__(BLOCK)
    value_kernel(T* y, const T* x, const T* c, int64_t n, int64_t terms) {
  using A = at::opmath_type<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i >= n) return;
  const A v = x[i];
  A sum = c[terms - 1];
  for (int64_t k = terms - 2; k >= 0; --k) sum = sum * v + A(c[k]);
  y[i] = static_cast<T>(sum);
}

template <typename T>
__global__ void __launch_bounds__(BLOCK)
    slope_kernel(T* dx, const T* dy, const T* x, const T* c, int64_t n, int64_t terms) {
  using A = at::opmath_type<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x;
  if (i >= n) return;
  const A v = x[i];
  A slope = A(terms - 1) * A(c[terms - 1]);
  for (int64_t k = terms - 2; k > 0; --k) slope = slope * v + A(k) * A(c[k]);
  dx[i] = static_cast<T>(terms == 1 ? A(0) : A(dy[i]) * slope);
}

}  // namespace

void polynomial_cuda(at::Tensor& y, const at::Tensor& x, const at::Tensor& c) {
  const c10::cuda::CUDAGuard guard(x.device());  // x may live on another GPU than the current one
  const int64_t n = x.numel();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "polynomial", [&] {
    value_kernel<scalar_t><<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(
        y.mutable_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), c.const_data_ptr<scalar_t>(),
        n, c.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

void polynomial_grad_cuda(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x,
                          const at::Tensor& c) {
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t n = x.numel();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "polynomial", [&] {
    slope_kernel<scalar_t><<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(
        dx.mutable_data_ptr<scalar_t>(), dy.const_data_ptr<scalar_t>(),
        x.const_data_ptr<scalar_t>(), c.const_data_ptr<scalar_t>(), n, c.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}
