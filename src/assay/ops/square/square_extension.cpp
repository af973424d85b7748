// y = x * x and dx = 2 x dy as a torch extension: checks the tensors, then runs the CPU loops here
// or the CUDA half in square_extension.cu.
//
// Slim headers only: torch/extension.h would take several times as long to compile.
//
// shapes  x, y, dx, dy: n elements, contiguous, of one dtype; checked here
// bytes   2 * n * sizeof(T) seen from here, the gradient 3; a CPU also reads what it overwrites
// FLOPs   n; the gradient 2 * n
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <type_traits>

// Elements that are worth a task of their own.
static constexpr int64_t GRAIN = 1 << 15;

#ifdef WITH_CUDA
void square_cuda(at::Tensor& y, const at::Tensor& x);
void square_grad_cuda(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x);
#endif

static void square_cpu(at::Tensor& y, const at::Tensor& x) {
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "square_out", [&] {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, x.numel(), GRAIN, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_integral_v<scalar_t>) {
          // Unsigned, because overflow of a signed integer is undefined; it wraps as torch's does.
          const auto v = static_cast<uint64_t>(from[i]);
          to[i] = static_cast<scalar_t>(v * v);
        } else {
          const auto v = static_cast<at::opmath_type<scalar_t>>(from[i]);
          to[i] = static_cast<scalar_t>(v * v);
        }
      }
    });
  });
}

static void square_grad_cpu(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "square_grad", [&] {
    using A = at::opmath_type<scalar_t>;
    const scalar_t *from = x.const_data_ptr<scalar_t>(), *grad = dy.const_data_ptr<scalar_t>();
    scalar_t* to = dx.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, x.numel(), GRAIN, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = static_cast<scalar_t>(A(2) * (A(from[i]) * A(grad[i])));
    });
  });
}

static void check(const char* what, const at::Tensor& y, const at::Tensor& x) {
  TORCH_CHECK(y.sizes() == x.sizes(), what, ": y is ", y.sizes(), ", x is ", x.sizes());
  TORCH_CHECK(y.scalar_type() == x.scalar_type(), what, ": y is ", y.scalar_type(), ", x is ",
              x.scalar_type());
  TORCH_CHECK(y.device() == x.device(), what, ": y is on ", y.device(), ", x on ", x.device());
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous(), what, ": tensors must be contiguous");
}

void square_grad_out(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x) {
  check("square_grad_out", dx, x);
  check("square_grad_out", dy, x);
  if (x.numel() == 0) return;
  if (x.is_cpu()) return square_grad_cpu(dx, dy, x);
#ifdef WITH_CUDA
  if (x.is_cuda()) return square_grad_cuda(dx, dy, x);
#endif
  TORCH_CHECK(false, "square_grad_out: built without support for ", x.device());
}

void square_out(at::Tensor& y, const at::Tensor& x) {
  check("square_out", y, x);
  if (x.numel() == 0) return;
  if (x.is_cpu()) return square_cpu(y, x);
#ifdef WITH_CUDA
  if (x.is_cuda()) return square_cuda(y, x);
#endif
  TORCH_CHECK(false, "square_out: built without support for ", x.device());
}
