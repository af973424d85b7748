// The layers of the network on a CPU, as functions with a plain C interface: one for each type.
//
// A layer is a header; all are one library, so that they are compiled once. Every layer gives the
// same bits whatever the number of threads: no sum depends on who made it.
#include "batchnorm2d.h"
#include "conv2d.h"
#include "linear.h"
#include "pointwise.h"

extern "C" {

void conv2d_float32(float* y, const float* x, const float* w, const float* b, int64_t batch,
    int64_t in, int64_t out, int64_t height, int64_t width) {
  convolve<float>(y, x, w, b, batch, in, out, height, width);
}
void conv2d_float64(double* y, const double* x, const double* w, const double* b, int64_t batch,
    int64_t in, int64_t out, int64_t height, int64_t width) {
  convolve<double>(y, x, w, b, batch, in, out, height, width);
}

void conv2d_grad_float32(float* dx, float* dw, float* db, const float* dy, const float* x, const
    float* w, int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width) {
  convolve_input<float>(dx, dy, w, batch, in, out, height, width);
  convolve_weights<float>(dw, db, dy, x, batch, in, out, height, width);
}
void conv2d_grad_float64(double* dx, double* dw, double* db, const double* dy, const double* x,
    const double* w, int64_t batch, int64_t in, int64_t out, int64_t height, int64_t width) {
  convolve_input<double>(dx, dy, w, batch, in, out, height, width);
  convolve_weights<double>(dw, db, dy, x, batch, in, out, height, width);
}

void batchnorm2d_float32(float* y, const float* x, const float* w, const float* b, int64_t batch,
    int64_t channels, int64_t plane) {
  normalise<float>(y, x, w, b, batch, channels, plane);
}
void batchnorm2d_float64(double* y, const double* x, const double* w, const double* b, int64_t
    batch, int64_t channels, int64_t plane) {
  normalise<double>(y, x, w, b, batch, channels, plane);
}

void batchnorm2d_grad_float32(float* dx, float* dw, float* db, const float* dy, const float* x,
    const float* w, int64_t batch, int64_t channels, int64_t plane) {
  normalise_grad<float>(dx, dw, db, dy, x, w, batch, channels, plane);
}
void batchnorm2d_grad_float64(double* dx, double* dw, double* db, const double* dy, const double*
    x, const double* w, int64_t batch, int64_t channels, int64_t plane) {
  normalise_grad<double>(dx, dw, db, dy, x, w, batch, channels, plane);
}

void relu_float32(float* y, const float* x, int64_t n) {
  relu<float>(y, x, n);
}
void relu_float64(double* y, const double* x, int64_t n) {
  relu<double>(y, x, n);
}

void relu_grad_float32(float* dx, const float* dy, const float* y, int64_t n) {
  relu_grad<float>(dx, dy, y, n);
}
void relu_grad_float64(double* dx, const double* dy, const double* y, int64_t n) {
  relu_grad<double>(dx, dy, y, n);
}

void maxpool2d_float32(float* y, const float* x, int64_t planes, int64_t height, int64_t width) {
  maxpool2d<float>(y, x, planes, height, width);
}
void maxpool2d_float64(double* y, const double* x, int64_t planes, int64_t height, int64_t width)
    {
  maxpool2d<double>(y, x, planes, height, width);
}

void maxpool2d_grad_float32(float* dx, const float* dy, const float* x, int64_t planes, int64_t
    height, int64_t width) {
  maxpool2d_grad<float>(dx, dy, x, planes, height, width);
}
void maxpool2d_grad_float64(double* dx, const double* dy, const double* x, int64_t planes, int64_t
    height, int64_t width) {
  maxpool2d_grad<double>(dx, dy, x, planes, height, width);
}

void linear_float32(float* y, const float* x, const float* w, const float* b, int64_t rows,
    int64_t in, int64_t out) {
  linear<float>(y, x, w, b, rows, in, out);
}
void linear_float64(double* y, const double* x, const double* w, const double* b, int64_t rows,
    int64_t in, int64_t out) {
  linear<double>(y, x, w, b, rows, in, out);
}

void linear_grad_float32(float* dx, float* dw, float* db, const float* dy, const float* x, const
    float* w, int64_t rows, int64_t in, int64_t out) {
  linear_grad<float>(dx, dw, db, dy, x, w, rows, in, out);
}
void linear_grad_float64(double* dx, double* dw, double* db, const double* dy, const double* x,
    const double* w, int64_t rows, int64_t in, int64_t out) {
  linear_grad<double>(dx, dw, db, dy, x, w, rows, in, out);
}

void cross_entropy_float32(float* loss, const float* x, const int64_t* labels, int64_t rows,
    int64_t classes) {
  cross_entropy<float>(loss, x, labels, rows, classes);
}
void cross_entropy_float64(double* loss, const double* x, const int64_t* labels, int64_t rows,
    int64_t classes) {
  cross_entropy<double>(loss, x, labels, rows, classes);
}

void cross_entropy_grad_float32(float* dx, const float* dloss, const float* x, const int64_t*
    labels, int64_t rows, int64_t classes) {
  cross_entropy_grad<float>(dx, dloss, x, labels, rows, classes);
}
void cross_entropy_grad_float64(double* dx, const double* dloss, const double* x, const int64_t*
    labels, int64_t rows, int64_t classes) {
  cross_entropy_grad<double>(dx, dloss, x, labels, rows, classes);
}

void sgd_step_float32(float* w, const float* grad, double rate, int64_t n) {
  sgd_step<float>(w, grad, rate, n);
}
void sgd_step_float64(double* w, const double* grad, double rate, int64_t n) {
  sgd_step<double>(w, grad, rate, n);
}

void load_batch_float32(float* x, int64_t* y, const uint8_t* images, const uint8_t* labels, const
    int64_t* order, int64_t batch, int64_t pixels) {
  load_batch<float>(x, y, images, labels, order, batch, pixels);
}
void load_batch_float64(double* x, int64_t* y, const uint8_t* images, const uint8_t* labels, const
    int64_t* order, int64_t batch, int64_t pixels) {
  load_batch<double>(x, y, images, labels, order, batch, pixels);
}

}  // extern "C"
