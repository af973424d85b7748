// y = c[0] + c[1] x + ... and dx = dy p'(x) as a torch extension: checks the tensors, then runs the
// CPU loop here or the CUDA half in polynomial_extension.cu.
//
// Slim headers only: torch/extension.h would take several times as long to compile.
//
// shapes  y, x, dx, dy: n elements; c: terms coefficients; contiguous, of one dtype; checked here
// bytes   2 * n * sizeof(T) seen from here; the gradient 3 * n * sizeof(T)
// FLOPs   2 * n * (terms - 1) by Horner's rule; the gradient n * (3 * terms - 4)
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>

// Elements that are worth a task of their own.
static constexpr int64_t GRAIN = 1 << 15;

#ifdef WITH_CUDA
void polynomial_cuda(at::Tensor& y, const at::Tensor& x, const at::Tensor& c);
void polynomial_grad_cuda(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x,
                          const at::Tensor& c);
#endif

static void check(const char* what, const at::Tensor& y, const at::Tensor& x) {
  TORCH_CHECK(y.sizes() == x.sizes(), what, ": y is ", y.sizes(), ", x is ", x.sizes());
  TORCH_CHECK(y.scalar_type() == x.scalar_type(), what, ": y is ", y.scalar_type(), ", x is ",
              x.scalar_type());
  TORCH_CHECK(y.device() == x.device(), what, ": y is on ", y.device(), ", x on ", x.device());
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous(), what, ": tensors must be contiguous");
}

static void check_coefficients(const char* what, const at::Tensor& x, const at::Tensor& c) {
  TORCH_CHECK(c.dim() == 1 && c.numel() > 0 && c.is_contiguous(), what, ": c is ", c.sizes(),
              "; it must be contiguous, with one coefficient or more");
  TORCH_CHECK(c.scalar_type() == x.scalar_type() && c.device() == x.device(), what,
              ": c must have the dtype and the device of x");
}

void polynomial_out(at::Tensor& y, const at::Tensor& x, const at::Tensor& c) {
  check("polynomial_out", y, x);
  check_coefficients("polynomial_out", x, c);
  if (x.numel() == 0) return;
#ifdef WITH_CUDA
  if (x.is_cuda()) return polynomial_cuda(y, x, c);
#endif
  TORCH_CHECK(x.is_cpu(), "polynomial_out: built without support for ", x.device());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "polynomial", [&] {
    using A = at::opmath_type<scalar_t>;
    const scalar_t *from = x.const_data_ptr<scalar_t>(), *term = c.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    const int64_t terms = c.numel();
    at::parallel_for(0, x.numel(), GRAIN, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const A v = from[i];
        A sum = term[terms - 1];
        for (int64_t k = terms - 2; k >= 0; --k) sum = sum * v + A(term[k]);
        to[i] = static_cast<scalar_t>(sum);
      }
    });
  });
}

void polynomial_grad_out(at::Tensor& dx, const at::Tensor& dy, const at::Tensor& x,
                         const at::Tensor& c) {
  check("polynomial_grad_out", dx, x);
  check("polynomial_grad_out", dy, x);
  check_coefficients("polynomial_grad_out", x, c);
  if (x.numel() == 0) return;
#ifdef WITH_CUDA
  if (x.is_cuda()) return polynomial_grad_cuda(dx, dy, x, c);
#endif
  TORCH_CHECK(x.is_cpu(), "polynomial_grad_out: built without support for ", x.device());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "polynomial", [&] {
    using A = at::opmath_type<scalar_t>;
    const scalar_t *from = x.const_data_ptr<scalar_t>(), *term = c.const_data_ptr<scalar_t>();
    const scalar_t* grad = dy.const_data_ptr<scalar_t>();
    scalar_t* to = dx.mutable_data_ptr<scalar_t>();
    const int64_t terms = c.numel();
    at::parallel_for(0, x.numel(), GRAIN, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const A v = from[i];
        A slope = A(terms - 1) * A(term[terms - 1]);
        for (int64_t k = terms - 2; k > 0; --k) slope = slope * v + A(k) * A(term[k]);
        // A constant has no slope, whatever dy is.
        to[i] = static_cast<scalar_t>(terms == 1 ? A(0) : A(grad[i]) * slope);
      }
    });
  });
}
