// y = the sum of x by CUB's DeviceReduce, as a torch extension: checks, then cub_sum.cu.
//
// shapes  x: n elements, contiguous, float or bfloat16; y: one, of the same type
// bytes   (n + 1) * sizeof(T)
// FLOPs   n
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#ifdef WITH_CUDA
void cub_sum_cuda(at::Tensor& y, const at::Tensor& x);
#endif

void cub_sum(at::Tensor& y, const at::Tensor& x) {
  TORCH_CHECK(y.numel() == 1 && y.scalar_type() == x.scalar_type(), "cub_sum: y is one like x");
  TORCH_CHECK(y.device() == x.device() && x.is_contiguous(), "cub_sum: contiguous, on one device");
#ifdef WITH_CUDA
  if (x.is_cuda()) return cub_sum_cuda(y, x);
#endif
  TORCH_CHECK(false, "cub_sum: built without support for ", x.device());
}
