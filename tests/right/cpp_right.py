"""C++: fused multiply-add, Kahan, float64 inside, workspaces that are kept, int8 and booleans."""

import torch

import assay
from assay import NotSupported

IDS = {
    "cpp/fused": "V3",
    "cpp/in_float64": "V3",
    "cpp/kept_workspace": "V17",
    "cpp/saturated": "V24",
    "cpp/refuses_by_name": "I9",
    "eager/refuses_by_name": "I9",
    "cpp/parity": "V24",
}
TEXT = r"""
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void horner_fused(float* y, const float* x, int n) {
    for (int i = 0; i < n; i++) y[i] = std::fma(std::fma(2.0f, x[i], 3.0f), x[i], 4.0f);
}
extern "C" void horner_wide(float* y, const float* x, int n) {
    for (int i = 0; i < n; i++) y[i] = (2.0 * x[i] + 3.0) * x[i] + 4.0;
}
extern "C" void horner_kept(float* y, const float* x, int n) {
    static std::vector<float> scratch;  // larger from call to call, and filled anew in each
    if (scratch.size() < static_cast<size_t>(n)) scratch.resize(n);
    for (int i = 0; i < n; i++) scratch[i] = 2.0f * x[i] + 3.0f;
    for (int i = 0; i < n; i++) y[i] = scratch[i] * x[i] + 4.0f;
}
extern "C" void clamp(signed char* y, const int* x, int n) {
    for (int i = 0; i < n; i++) y[i] = x[i] > 127 ? 127 : x[i] < -128 ? -128 : x[i];
}
extern "C" void parity(bool* y, const int* x, int n) {
    for (int i = 0; i < n; i++) y[i] = x[i] & 1;
}
"""


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("polynomial", lambda x: (2 * x + 3) * x + 4, inputs, cases=assay.grid(n=[500]))


def variant(name, function):
    @op.launcher(f"cpp/{name}", source=TEXT)
    def launch(k, y, x):
        getattr(k, function)(y, x, x.numel())


variant("fused", "horner_fused")
variant("in_float64", "horner_wide")
variant("kept_workspace", "horner_kept")


def whole_numbers(make, n):
    return (make.integers(n, low=-300, high=300, dtype="int32"),)


narrow = assay.Op(
    "saturated",
    lambda x: x.clamp(-128, 127).to(torch.int8),
    whole_numbers,
    cases=assay.grid(n=[500]),
)


@narrow.launcher("cpp/saturated", source=TEXT)
def saturated(k, y, x):
    k.clamp(y, x, x.numel())


odd = assay.Op("odd", lambda x: x % 2 != 0, whole_numbers, cases=assay.grid(n=[500]))


@odd.launcher("cpp/parity", source=TEXT)
def parity(k, y, x):
    k.parity(y, x, x.numel())


def typed(make, n, dtype):
    return (make.normal(n, dtype=dtype),)


def only_float32(dtype):
    return dtype == "float32" or f"{dtype} is not promised"


partial = assay.Op(
    "polynomial_in_float32",
    lambda x: (2 * x + 3) * x + 4,
    typed,
    cases=assay.grid(n=[100], dtype=["float32", "float16"]),
    supports=only_float32,
)


@partial.launcher("cpp/refuses_by_name", source=TEXT)
def refuses_by_name(k, y, x):
    if x.dtype != torch.float32:
        raise NotSupported("float16; supported: float32")
    k.horner_wide(y, x, x.numel())


@partial.variant("eager/refuses_by_name")
def eager_refuses_by_name(x):
    if x.dtype != torch.float32:
        raise NotSupported("float16; supported: float32")
    return (2 * x + 3) * x + 4
