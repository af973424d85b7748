"""Cheats in C++, plain and with torch's headers, and in NumPy: late work, memory kept or raw."""

import threading
import time

import numpy

import assay

EXPECT = {
    "cpp/thread_left": ("unfinished", "output 0 was still being written when the call returned"),
    "extension/unwritten": ("not written", "200 of 200 elements of output 0, first at [0]"),
    "extension/unwritten_resized": ("not written", "200 of 200 elements of output 0"),
    "extension/beside_zeros": ("wrote outside", "1 value after the end of output 0"),
    "extension/kept_memory": ("shares memory", "output 0 lies in memory kept from an earlier call"),
    "extension/kept_answer": ("stale answer", "returned the answer of the call before"),
    "extension/sparse": ("wrong dtype", "a torch.sparse_coo, expected a plain dense tensor"),
    "python/thread_left": ("unfinished", "output 0 was still being written when the call returned"),
}
IDS = {
    "extension/unwritten": "V9",
    "extension/unwritten_resized": "V9",
    "extension/kept_memory": "V15 V17",
    "extension/kept_answer": "V17",
    "extension/sparse": "V18",
}
TWIN = {
    "cpp/thread_left": "cpp/thread_joined",
    "extension/unwritten": "extension/right",
    "extension/unwritten_resized": "extension/resized",
    "extension/beside_zeros": "extension/right",
    "extension/kept_memory": "extension/kept_workspace",
    "extension/kept_answer": "extension/right",
    "extension/sparse": "extension/right",
    "python/thread_left": "python/thread_joined",
}

THREAD = r"""
#include <chrono>
#include <thread>

extern "C" void twice(float* y, const float* x, int n) {
    std::thread worker([=] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        while (std::chrono::steady_clock::now() < end) {}
        for (int i = 0; i < n; i++) y[i] = 2 * x[i];
    });
    worker.join();
}
"""
TORCH = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

at::Tensor right(const at::Tensor& x) {
    auto y = at::empty_like(x);
    return y.copy_(x.add(x));
}

at::Tensor unwritten(const at::Tensor& x) { return at::empty({x.size(0)}, x.options()); }

at::Tensor resized(const at::Tensor& x) {
    auto y = at::empty({0}, x.options()).resize_({x.size(0)});
    return y.copy_(x.add(x));
}

at::Tensor unwritten_resized(const at::Tensor& x) {
    return at::empty({0}, x.options()).resize_({x.size(0)});
}

at::Tensor beside_zeros(const at::Tensor& x) {
    auto y = at::zeros_like(x);
    y.data_ptr<float>()[x.size(0)] = 1;
    return y.copy_(x.add(x));
}

at::Tensor kept_memory(const at::Tensor& x) {
    static at::Tensor y = at::empty_like(x);
    return y.copy_(x.add(x));
}

at::Tensor kept_workspace(const at::Tensor& x) {
    static at::Tensor work = at::empty_like(x);
    return work.copy_(x).add(x);
}

at::Tensor kept_answer(const at::Tensor& x) {
    static at::Tensor y = x.add(x);
    return y.clone();
}

at::Tensor sparse(const at::Tensor& x) { return (x.add(x)).to_sparse(); }
"""


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("doubled", lambda x: 2 * x, inputs, cases=assay.grid(n=[200]))


def launcher(name, text):
    @op.launcher(f"cpp/{name}", source=text)
    def launch(k, y, x):
        k.twice(y, x, x.numel())


launcher("thread_joined", THREAD)
launcher("thread_left", THREAD.replace("worker.join()", "worker.detach()"))


FUNCTIONS = (
    "right",
    "unwritten",
    "resized",
    "unwritten_resized",
    "beside_zeros",
    "kept_memory",
    "kept_workspace",
    "kept_answer",
    "sparse",
)


def function(name):
    @op.variant(f"extension/{name}", source=TORCH)
    def call(k, x):
        functions = {each: getattr(k, each) for each in FUNCTIONS}  # all of them: one build
        return functions[name](x)


for each in FUNCTIONS:
    function(each)


def doubled_later(out, x):
    """A thread that has not done its work when its starter goes on."""

    def work():
        time.sleep(0.02)
        numpy.multiply(x.numpy(), 2, out=out)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@op.variant("python/thread_left")
def thread_left(x):
    out = numpy.zeros(len(x), numpy.float32)
    doubled_later(out, x)
    return out


@op.variant("python/thread_joined")
def thread_joined(x):
    out = numpy.zeros(len(x), numpy.float32)
    doubled_later(out, x).join()
    return out
