"""Convolution, batch norm, ReLU and pooling fused in C++, wrong by one edit; and wrong buffers."""

import torch.nn.functional as F

import assay

EXPECT = {
    "cpp/flipped": ("wrong value", "element"),
    "cpp/pools_its_input": ("wrong value", "element"),
    "cpp/divides_by_the_variance": ("wrong value", "element"),
    "cpp/no_relu": ("wrong value", "element"),
    "cpp/no_last_tap": ("wrong value", "element"),
    "eager/true_convolution": ("wrong value", "element"),
    "eager/buffers_of_full_size": ("wrong shape", "(1, 1, 4, 4), expected (1, 1, 2, 2)"),
    "cuda/reads_past_the_end": ("read outside", "past the end of x"),
    "cuda/writes_full_rows": ("wrote outside", "output 0"),
}
IDS = {
    "cpp/flipped": "X18",
    "cpp/pools_its_input": "X22",
    "cpp/divides_by_the_variance": "X23",
    "cpp/no_relu": "X22",
    "cpp/no_last_tap": "X24",
    "eager/true_convolution": "X18",
    "eager/buffers_of_full_size": "X19",
    "cuda/reads_past_the_end": "X24 V12",
    "cuda/writes_full_rows": "X19 V12",
}
TWIN = {
    "cpp/flipped": "cpp/right",
    "cpp/pools_its_input": "cpp/right",
    "cpp/divides_by_the_variance": "cpp/right",
    "cpp/no_relu": "cpp/right",
    "cpp/no_last_tap": "cpp/right",
    "cuda/reads_past_the_end": "cuda/inside",
    "cuda/writes_full_rows": "cuda/inside",
}

FUSED = r"""
#include <algorithm>
#include <cmath>

static float convolved(const float* x, const float* w, int size, int row, int column) {
    float sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const int r = row + i - 1, c = column + j - 1;
            if (r >= 0 && r < size && c >= 0 && c < size) sum += x[r * size + c] * w[i * 3 + j];
        }
    return sum;
}

// One channel, 3 x 3 with padding 1, normalised, cut at 0, the largest of each 2 x 2.
extern "C" void fused(float* y, const float* x, const float* w, float mean, float variance,
                      int size) {
    for (int row = 0; row < size / 2; row++)
        for (int column = 0; column < size / 2; column++) {
            float largest = -INFINITY;
            for (int at = 0; at < 4; at++) {
                const int r = 2 * row + at / 2, c = 2 * column + at % 2;
                const float v = (convolved(x, w, size, r, c) - mean) / std::sqrt(variance + 1e-5f);
                largest = std::max(largest, std::max(v, 0.0f));
            }
            y[row * (size / 2) + column] = largest;
        }
}
"""


def reference(x, w, mean, variance):
    y = (F.conv2d(x, w, padding=1) - mean) / (variance + 1e-5) ** 0.5
    return F.max_pool2d(y.relu(), 2)


def inputs(make, n):
    return make.normal(1, 1, n, n), make.normal(1, 1, 3, 3), 0.5, 4.0


op = assay.Op("convolved", reference, inputs, cases=assay.grid(n=[8]))


def variant(name, text):
    @op.launcher(f"cpp/{name}", source=text)
    def launch(k, y, x, w, mean, variance):
        k.fused(y, x, w, mean, variance, x.shape[-1])


variant("right", FUSED)
variant("flipped", FUSED.replace("w[i * 3 + j]", "w[(2 - i) * 3 + 2 - j]"))
variant("pools_its_input", FUSED.replace("std::max(v, 0.0f)", "x[r * size + c]"))
variant("divides_by_the_variance", FUSED.replace("std::sqrt(variance + 1e-5f)", "variance"))
variant("no_relu", FUSED.replace("std::max(v, 0.0f)", "v"))
variant("no_last_tap", FUSED.replace("j < 3", "j < 3 - i / 2"))


def valid_inputs(make, n):
    return make.normal(1, 1, n, n), make.normal(1, 1, 3, 3)


def conv2d(x, w):
    return F.conv2d(x, w)


valid = assay.Op(
    "convolved_inside", lambda x, w: F.conv2d(x, w), valid_inputs, cases=assay.grid(n=[4])
)


@valid.variant("eager/true_convolution")
def true_convolution(x, w):
    return F.conv2d(x, w.flip(-1, -2))


@valid.variant("eager/buffers_of_full_size")
def buffers_of_full_size(x, w):
    return F.pad(F.conv2d(x, w), (0, 2, 0, 2))


VALID = r"""
// No padding: n - 2 rows of n - 2. A thread for each output.
extern "C" __global__ void conv(float* y, const float* x, const float* w, int n) {
    const int m = n - 2, row = threadIdx.x / m, column = threadIdx.x % m;
    if (row >= m) return;
    float sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) sum += x[(row + i) * n + column + j] * w[i * 3 + j];
    y[row * m + column] = sum;
}
"""


def valid_variant(name, text):
    @valid.launcher(f"cuda/{name}", source=text)
    def launch(k, y, x, w):
        k["conv"](grid=1, block=32)(y, x, w, x.shape[-1])


valid_variant("inside", VALID)
valid_variant("reads_past_the_end", VALID.replace("x[(row + i) * n", "x[(row + i + 1) * n"))
valid_variant("writes_full_rows", VALID.replace("y[row * m", "y[row * n"))
