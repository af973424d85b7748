// The layers written plainly for a GPU: one thread an element of the result, or one block a result
// that is a sum over the batch. Nothing is tiled, fused or kept: this is where the ladder starts.
//
// Formulas are those of the Ops beside this file. Tensors are contiguous, (batch, channels, h, w).
// Sums are made in one fixed order, so every run gives the same bits.
#include "assay.cuh"

typedef long long i64;
constexpr int SUM_BLOCK = 128;  // of kernels that give a block to each result

__device__ __forceinline__ i64 element() { return i64(blockIdx.x) * blockDim.x + threadIdx.x; }

template <typename T>
__global__ void conv2d(T* y, const T* x, const T* k, const T* bias, i64 batch, i64 in, i64 out,
                       i64 height, i64 width) {
  const i64 at = element();
  if (at >= batch * out * height * width) return;
  const i64 w = at % width, h = at / width % height, o = at / (width * height) % out;
  const i64 b = at / (width * height * out);
  T sum = bias[o];
  for (i64 c = 0; c < in; ++c)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        const i64 row = h + i - 1, column = w + j - 1;
        if (row >= 0 && row < height && column >= 0 && column < width)
          sum += x[((b * in + c) * height + row) * width + column] * k[((o * in + c) * 3 + i) * 3 + j];
      }
  y[at] = sum;
}

template <typename T>
__global__ void conv2d_grad_input(T* dx, const T* dy, const T* k, i64 batch, i64 in, i64 out,
                                  i64 height, i64 width) {
  const i64 at = element();
  if (at >= batch * in * height * width) return;
  const i64 w = at % width, h = at / width % height, c = at / (width * height) % in;
  const i64 b = at / (width * height * in);
  T sum = 0;
  for (i64 o = 0; o < out; ++o)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        const i64 row = h + 1 - i, column = w + 1 - j;  // the outputs that x[h, w] went into
        if (row >= 0 && row < height && column >= 0 && column < width)
          sum += dy[((b * out + o) * height + row) * width + column] * k[((o * in + c) * 3 + i) * 3 + j];
      }
  dx[at] = sum;
}

// One block a weight k[o, c, i, j].
template <typename T>
__global__ void conv2d_grad_weights(T* dk, const T* dy, const T* x, i64 batch, i64 in, i64 out,
                                    i64 height, i64 width) {
  const int i = blockIdx.x / 3 % 3 - 1, j = blockIdx.x % 3 - 1;
  const i64 c = blockIdx.x / 9 % in, o = blockIdx.x / (9 * in), plane = height * width;
  T sum = 0;
  for (i64 at = threadIdx.x; at < batch * plane; at += SUM_BLOCK) {
    const i64 b = at / plane, h = at % plane / width, w = at % width;
    if (h + i >= 0 && h + i < height && w + j >= 0 && w + j < width)
      sum += dy[(b * out + o) * plane + at % plane] *
             x[((b * in + c) * height + h + i) * width + w + j];
  }
  sum = assay::block_reduce<SUM_BLOCK>(sum, assay::Sum{});
  if (threadIdx.x == 0) dk[blockIdx.x] = sum;
}

// Sum of f(index) over what belongs to channel blockIdx.x, known to all threads of the block.
template <typename T, typename F>
__device__ T over_channel(i64 batch, i64 channels, i64 plane, F f) {
  T sum = 0;
  for (i64 at = threadIdx.x; at < batch * plane; at += SUM_BLOCK)
    sum += f((at / plane * channels + blockIdx.x) * plane + at % plane);
  return assay::block_reduce<SUM_BLOCK>(sum, assay::Sum{});
}

template <typename T>
__global__ void channel_sum(T* sums, const T* x, i64 batch, i64 channels, i64 plane) {
  const T sum = over_channel<T>(batch, channels, plane, [&](i64 i) { return x[i]; });
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <typename T>
struct Statistics {
  T mean, rest, rstd;  // the mean is mean + rest: a first sum of many values is off by some roundings
  __device__ T centred(T v) const { return v - mean - rest; }
};

// Of this block's channel, with rstd = 1 / sqrt(var + 1e-5).
template <typename T>
__device__ Statistics<T> statistics(const T* x, i64 batch, i64 channels, i64 plane) {
  const T count = T(batch * plane);
  Statistics<T> s = {};
  s.mean = over_channel<T>(batch, channels, plane, [&](i64 i) { return x[i]; }) / count;
  s.rest = over_channel<T>(batch, channels, plane, [&](i64 i) { return x[i] - s.mean; }) / count;
  const T squares = over_channel<T>(batch, channels, plane, [&](i64 i) {
    const T d = s.centred(x[i]);
    return d * d;
  });
  s.rstd = T(1) / sqrt(squares / count + T(1e-5));
  return s;
}

template <typename T>
__global__ void batchnorm2d(T* y, const T* x, const T* w, const T* b, i64 batch, i64 channels,
                            i64 plane) {
  const Statistics<T> s = statistics(x, batch, channels, plane);
  const T weight = w[blockIdx.x], shift = b[blockIdx.x];
  for (i64 at = threadIdx.x; at < batch * plane; at += SUM_BLOCK) {
    const i64 i = (at / plane * channels + blockIdx.x) * plane + at % plane;
    y[i] = s.centred(x[i]) * s.rstd * weight + shift;
  }
}

template <typename T>
__global__ void batchnorm2d_grad(T* dx, T* dw, T* db, const T* dy, const T* x, const T* w, i64 batch,
                                 i64 channels, i64 plane) {
  const Statistics<T> s = statistics(x, batch, channels, plane);
  const T count = T(batch * plane);
  const T sum = over_channel<T>(batch, channels, plane, [&](i64 i) { return dy[i]; });
  const T product = over_channel<T>(batch, channels, plane, [&](i64 i) {
    return dy[i] * (s.centred(x[i]) * s.rstd);
  });
  if (threadIdx.x == 0) {
    dw[blockIdx.x] = product;
    db[blockIdx.x] = sum;
  }
  const T scale = s.rstd * w[blockIdx.x], middle = sum / count, slope = product / count;
  for (i64 at = threadIdx.x; at < batch * plane; at += SUM_BLOCK) {
    const i64 i = (at / plane * channels + blockIdx.x) * plane + at % plane;
    dx[i] = scale * (dy[i] - middle - s.centred(x[i]) * s.rstd * slope);
  }
}

template <typename T>
__global__ void relu(T* y, const T* x, i64 n) {
  const i64 i = element();
  if (i < n) y[i] = x[i] <= T(0) ? T(0) : x[i];  // a NaN stays
}

template <typename T>
__global__ void relu_grad(T* dx, const T* dy, const T* y, i64 n) {
  const i64 i = element();
  if (i < n) dx[i] = y[i] <= T(0) ? T(0) : dy[i];
}

// Where the largest of a window lies: ties to the first, a NaN above all, as in PyTorch.
template <typename T>
__device__ i64 largest(const T* x, i64 first, i64 width) {
  i64 best = first;
  const i64 others[] = {first + 1, first + width, first + width + 1};
#pragma unroll
  for (int i = 0; i < 3; ++i)
    if (x[others[i]] > x[best] || x[others[i]] != x[others[i]]) best = others[i];
  return best;
}

template <typename T>
__global__ void maxpool2d(T* y, const T* x, i64 planes, i64 height, i64 width) {
  const i64 at = element(), h = height / 2, w = width / 2;
  if (at >= planes * h * w) return;
  const i64 first = (at / (h * w) * height + at / w % h * 2) * width + at % w * 2;
  y[at] = x[largest(x, first, width)];
}

// One thread an element of dx: it is written whether or not a window chose it, or holds it at all.
template <typename T>
__global__ void maxpool2d_grad(T* dx, const T* dy, const T* x, i64 planes, i64 height, i64 width) {
  const i64 at = element(), h = height / 2, w = width / 2;
  if (at >= planes * height * width) return;
  const i64 row = at / width % height / 2, column = at % width / 2, p = at / (width * height);
  T grad = 0;
  if (row < h && column < w) {
    const i64 first = (p * height + row * 2) * width + column * 2;
    if (largest(x, first, width) == at) grad = dy[(p * h + row) * w + column];
  }
  dx[at] = grad;
}

template <typename T>
__global__ void linear(T* y, const T* x, const T* w, const T* b, i64 rows, i64 in, i64 out) {
  const i64 at = element(), r = at / out, o = at % out;
  if (r >= rows) return;
  T sum = b[o];
  for (i64 i = 0; i < in; ++i) sum += x[r * in + i] * w[o * in + i];
  y[at] = sum;
}

template <typename T>
__global__ void linear_grad_input(T* dx, const T* dy, const T* w, i64 rows, i64 in, i64 out) {
  const i64 at = element(), r = at / in, i = at % in;
  if (r >= rows) return;
  T sum = 0;
  for (i64 o = 0; o < out; ++o) sum += dy[r * out + o] * w[o * in + i];
  dx[at] = sum;
}

template <typename T>
__global__ void linear_grad_weights(T* dw, const T* dy, const T* x, i64 rows, i64 in, i64 out) {
  const i64 at = element(), o = at / in, i = at % in;
  if (o >= out) return;
  T sum = 0;
  for (i64 r = 0; r < rows; ++r) sum += dy[r * out + o] * x[r * in + i];
  dw[at] = sum;
}

template <typename T>
__global__ void row_sum(T* sums, const T* x, i64 rows, i64 columns) {
  const i64 o = element();
  if (o >= columns) return;
  T sum = 0;
  for (i64 r = 0; r < rows; ++r) sum += x[r * columns + o];
  sums[o] = sum;
}

template <typename T>
__device__ T loss_of(const T* x, i64 label, i64 classes) {
  T most = x[0], sum = 0;
  for (i64 j = 1; j < classes; ++j) most = x[j] > most ? x[j] : most;
  for (i64 j = 0; j < classes; ++j) sum += exp(x[j] - most);
  return log(sum) + (most - x[label]);  // exact where the label is the largest
}

template <typename T>
__global__ void cross_entropy(T* loss, const T* x, const i64* labels, i64 rows, i64 classes) {
  constexpr int BLOCK = 256;
  T sum = 0;
  for (i64 r = threadIdx.x; r < rows; r += BLOCK)
    sum += loss_of(x + r * classes, labels[r], classes);
  sum = assay::block_reduce<BLOCK>(sum, assay::Sum{});
  if (threadIdx.x == 0) *loss = sum / T(rows);
}

template <typename T>
__global__ void cross_entropy_grad(T* dx, const T* dloss, const T* x, const i64* labels, i64 rows,
                                   i64 classes) {
  const i64 r = element();
  if (r >= rows) return;
  x += r * classes;
  dx += r * classes;
  T most = x[0], others = 0;
  for (i64 j = 1; j < classes; ++j) most = x[j] > most ? x[j] : most;
  for (i64 j = 0; j < classes; ++j)
    if (j != labels[r]) others += exp(x[j] - most);
  const T sum = others + exp(x[labels[r]] - most), scale = *dloss / T(rows);
  for (i64 j = 0; j < classes; ++j)
    // p - 1 of the label is minus what the others have: no digits cancel.
    dx[j] = scale * ((j == labels[r] ? -others : exp(x[j] - most)) / sum);
}

template <typename T>
__global__ void sgd_step(T* w, const T* grad, double rate, i64 n) {
  const i64 i = element();
  if (i < n) w[i] -= T(rate) * grad[i];
}

template <typename T>
__global__ void load_batch(T* x, i64* y, const unsigned char* images, const unsigned char* labels,
                           const i64* order, i64 batch, i64 pixels) {
  const i64 at = element();
  if (at < batch) y[at] = labels[order[at]];
  if (at >= batch * pixels) return;
  const i64 b = at / pixels;
  x[at] = (T(images[order[b] * pixels + at % pixels]) / T(255) - T(0.1307)) / T(0.3081);
}
