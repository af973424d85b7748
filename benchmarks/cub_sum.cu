// y = the sum of x by CUB's DeviceReduce, the CUDA half of cub_sum.cpp: added in float, as here.
//
// CUB would add bfloat16 in bfloat16; each element is widened first, and the sum rounded once. Its
// scratch comes from torch's allocator, in every call, as that of the kernels does that it is set
// beside.
//
// shapes  x: n elements, float or bfloat16; y: one; checked by the caller
// bytes   (n + 1) * sizeof(T), and next to nothing for partial sums
// FLOPs   n
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>

namespace {

struct Widened {
  __device__ float operator()(float v) const { return v; }
  __device__ float operator()(__nv_bfloat16 v) const { return __bfloat162float(v); }
};

template <typename From, typename To>
void run(at::Tensor& y, const at::Tensor& x) {
  const auto stream = c10::cuda::getCurrentCUDAStream().stream();
  const auto* from = static_cast<const From*>(x.const_data_ptr());
  auto* to = static_cast<To*>(y.mutable_data_ptr());
  size_t bytes = 0;
  const auto reduce = [&](void* scratch) {
    C10_CUDA_CHECK(cub::DeviceReduce::TransformReduce(
        scratch, bytes, from, to, x.numel(), cuda::std::plus<>{}, Widened{}, 0.0f, stream));
  };
  reduce(nullptr);
  const auto wanted = at::TensorOptions().dtype(at::kByte).device(x.device());
  at::Tensor scratch = at::empty({static_cast<int64_t>(bytes)}, wanted);
  reduce(scratch.mutable_data_ptr());
}

}  // namespace

void cub_sum_cuda(at::Tensor& y, const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  if (x.scalar_type() == at::kFloat) return run<float, float>(y, x);
  TORCH_CHECK(x.scalar_type() == at::kBFloat16, "cub_sum: float or bfloat16");
  run<__nv_bfloat16, at::BFloat16>(y, x);  // which CUB reads by whole vectors, and floats become
}
