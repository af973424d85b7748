// y = softmax(x) over the last dimension as a torch extension: checks the tensors, then runs the
// CPU loop here or the CUDA half in softmax_extension.cu.
//
// The CPU loop is what one writes first, with std::exp a call an element; softmax.cpp is the fast
// one. Slim headers only: torch/extension.h would take several times as long to compile.
//
// shapes  x, y: (rows, n), contiguous, of one floating dtype; checked here
// bytes   2 * rows * n * sizeof(T) seen from here; later walks find the row in a cache
// FLOPs   5 * rows * n counting exp as one (max, subtract, exp, add, divide)
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

// Elements that are worth a task of their own.
static constexpr int64_t GRAIN = 1 << 15;

#ifdef WITH_CUDA
void softmax_cuda(at::Tensor& y, const at::Tensor& x);
#endif

template <typename T, typename A>
static void softmax_row(T* y, const T* x, int64_t n, A* exps) {
  constexpr A lowest = -std::numeric_limits<A>::infinity();
  A top = lowest;
  for (int64_t i = 0; i < n; ++i) {
    const A v = static_cast<A>(x[i]);
    top = v > top ? v : top;  // a NaN loses here and comes back through exp
  }
  // exp(-inf - 0) is 0 where exp(-inf + inf) would be NaN; a row of only -inf ends as 0 / 0.
  const A shift = top == lowest ? A(0) : top;
  double sum = 0;  // free, beside exp, and as good as exact for any n
  for (int64_t i = 0; i < n; ++i) {
    exps[i] = std::exp(static_cast<A>(x[i]) - shift);
    sum += exps[i];
  }
  const A total = static_cast<A>(sum);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(exps[i] / total);
}

static void softmax_cpu(at::Tensor& y, const at::Tensor& x) {
  const int64_t n = x.size(-1), rows = x.numel() / n;
  // As many rows a task as give it enough to do.
  const int64_t grain = std::max<int64_t>(1, GRAIN / n);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "softmax_out", [&] {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, rows, grain, [=](int64_t begin, int64_t end) {
      std::vector<at::opmath_type<scalar_t>> exps(n);  // so that y is rounded once
      for (int64_t row = begin; row < end; ++row)
        softmax_row(to + row * n, from + row * n, n, exps.data());
    });
  });
}

void softmax_out(at::Tensor& y, const at::Tensor& x) {
  TORCH_CHECK(y.sizes() == x.sizes(), "softmax_out: y is ", y.sizes(), ", x is ", x.sizes());
  TORCH_CHECK(x.dim() >= 1, "softmax_out: x needs at least one dimension");
  TORCH_CHECK(y.scalar_type() == x.scalar_type(), "softmax_out: y is ", y.scalar_type(), ", x is ",
              x.scalar_type());
  TORCH_CHECK(y.device() == x.device(), "softmax_out: y is on ", y.device(), ", x on ", x.device());
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous(), "softmax_out: x and y must be contiguous");
  if (x.numel() == 0) return;
  if (x.is_cpu()) return softmax_cpu(y, x);
#ifdef WITH_CUDA
  if (x.is_cuda()) return softmax_cuda(y, x);
#endif
  TORCH_CHECK(false, "softmax_out: built without support for ", x.device());
}
