"""CUDA kernels wrong in who waits for whom: locks, halos, sums over blocks, data used again."""

import torch

import assay

EXPECT = {
    "cuda/lock_of_a_block": ("race", ""),
    "cuda/no_fence": ("race", ""),
    "cuda/spin_lock_in_a_warp": ("race", ""),
    "cuda/no_lock": ("race", ""),
    "cuda/no_halo": ("wrong value", "element"),
    "cuda/halo_beyond_the_end": ("read outside", "of x"),
    "cuda/barrier_in_a_branch": ("divergent barrier", ""),
    "cuda/no_barrier": ("read before written", ""),
    "cuda/sum_of_other_blocks": ("race", ""),
    "cuda/beyond_the_batch": ("read outside", "of x"),
    "cuda/even_elements_only": ("wrong value", "element"),
    "cuda/works_on_its_input": ("changed its input", "x"),
    "cuda/traps": ("crashed", ""),
    "cuda/waits_for_nobody": ("timed out", ""),
}
IDS = {
    "cuda/lock_of_a_block": "X29",
    "cuda/no_fence": "X30",
    "cuda/spin_lock_in_a_warp": "X30",
    "cuda/no_lock": "X30",
    "cuda/no_halo": "X35",
    "cuda/halo_beyond_the_end": "X24 V12",
    "cuda/barrier_in_a_branch": "X35",
    "cuda/no_barrier": "X35 V16",
    "cuda/sum_of_other_blocks": "X37",
    "cuda/beyond_the_batch": "X37 V12",
    "cuda/even_elements_only": "X33",
    "cuda/works_on_its_input": "X32",
    "cuda/traps": "L7",
    "cuda/waits_for_nobody": "L8",
}
TWIN = {
    "cuda/lock_of_a_block": "cuda/lock",
    "cuda/no_fence": "cuda/lock",
    "cuda/spin_lock_in_a_warp": "cuda/lock",
    "cuda/no_lock": "cuda/lock",
    "cuda/no_halo": "cuda/window",
    "cuda/halo_beyond_the_end": "cuda/window",
    "cuda/barrier_in_a_branch": "cuda/window",
    "cuda/no_barrier": "cuda/window",
    "cuda/sum_of_other_blocks": "cuda/loss",
    "cuda/beyond_the_batch": "cuda/loss",
    "cuda/even_elements_only": "cuda/copy",
    "cuda/works_on_its_input": "cuda/copy",
    "cuda/traps": "cuda/copy",
    "cuda/waits_for_nobody": "cuda/copy",
}


def inputs(make, n):
    return (make.normal(n),)


LOCKED = r"""
// total = how many of x are positive, added up under one lock
extern "C" __global__ void count(int* total, int* lock, const float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int own;
    if (threadIdx.x == 0) own = 0;
    __syncthreads();
    bool waits = i < n && x[i] > 0;
    while (waits) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *total += 1;
            __threadfence();
            atomicExch(lock, 0);
            waits = false;
        }
    }
}
"""
FENCE = "            __threadfence();\n"
SPINS = LOCKED.replace(
    "if (atomicCAS(lock, 0, 1) == 0) {", "while (atomicCAS(lock, 0, 1) != 0) {} {"
).replace(FENCE, "")

counting = assay.Op(
    "counted", lambda x: (x > 0).sum().int().reshape(1), inputs, cases=assay.grid(n=[48])
)


def locked(name, text):
    @counting.launcher(f"cuda/{name}", source=text)
    def launch(k, total, x):
        total.zero_()
        lock = torch.zeros(1, dtype=torch.int32)
        k["count"](grid=2, block=32)(total, lock, x, x.numel())


locked("lock", LOCKED)
locked("lock_of_a_block", LOCKED.replace("(lock,", "(&own,"))
locked("no_fence", LOCKED.replace(FENCE, ""))
locked("spin_lock_in_a_warp", SPINS)
locked("no_lock", LOCKED.replace("atomicCAS(lock, 0, 1) == 0", "*lock == 0"))

WINDOW = r"""
// y[i] = x[i - 1] + x[i] + x[i + 1], nothing beyond the ends; a block's part and its halo in shared
extern "C" __global__ void window(float* y, const float* x, int n) {
    __shared__ float s[66];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t + 1] = i < n ? x[i] : 0.0f;
    if (t == 0) s[0] = i > 0 ? x[i - 1] : 0.0f;
    if (t == 63) s[65] = i + 1 < n ? x[i + 1] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = s[t] + s[t + 1] + s[t + 2];
}
"""


def neighbours(x):
    padded = torch.nn.functional.pad(x, (1, 1))
    return padded[:-2] + padded[1:-1] + padded[2:]


stencil = assay.Op("neighbours", neighbours, inputs, cases=assay.grid(n=[128]))


def windowed(name, text):
    @stencil.launcher(f"cuda/{name}", source=text)
    def launch(k, y, x):
        k["window"](grid=2, block=64)(y, x, x.numel())


windowed("window", WINDOW)
windowed("no_halo", WINDOW.replace("i > 0 ? x[i - 1] : 0.0f", "0.0f"))
windowed("halo_beyond_the_end", WINDOW.replace("i + 1 < n ? x[i + 1] : 0.0f", "x[i + 1]"))
windowed("barrier_in_a_branch", WINDOW.replace("__syncthreads", "if (t < 40) __syncthreads"))
windowed("no_barrier", WINDOW.replace("__syncthreads();", ""))

LOSS = r"""
// partial[b]: sum of a block's squares; loss: sum of the blocks' sums
extern "C" __global__ void partials(float* partial, const float* x, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] * x[i] : 0.0f;
    for (int half = 32; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) s[t] += s[t + half];
    }
    if (t == 0) partial[blockIdx.x] = s[0];
}
extern "C" __global__ void total(float* loss, const float* partial, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++) sum += partial[i];
    *loss = sum;
}
extern "C" __global__ void both(float* loss, float* partial, const float* x, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i < n ? x[i] * x[i] : 0.0f;
    for (int half = 32; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) s[t] += s[t + half];
    }
    if (t == 0) partial[blockIdx.x] = s[0];
    if (t == 0 && blockIdx.x == gridDim.x - 1) {
        float sum = 0;
        for (int b = 0; b < gridDim.x; b++) sum += partial[b];
        *loss = sum;
    }
}
"""

squares = assay.Op(
    "sum_of_squares", lambda x: (x * x).sum().reshape(1), inputs, cases=assay.grid(n=[129])
)


@squares.launcher("cuda/loss", source=LOSS)
def loss(k, out, x):
    """Right: between two launches everybody has waited for everybody."""
    partial = torch.empty(3)
    k["partials"](grid=3, block=64)(partial, x, x.numel())
    k["total"](grid=1, block=1)(out, partial, 3)


@squares.launcher("cuda/sum_of_other_blocks", source=LOSS)
def sum_of_other_blocks(k, out, x):
    partial = torch.empty(3)
    k["both"](grid=3, block=64)(out, partial, x, x.numel())


@squares.launcher(
    "cuda/beyond_the_batch", source=LOSS.replace("i < n ? x[i] * x[i] : 0.0f", "x[i] * x[i]")
)
def beyond_the_batch(k, out, x):
    partial = torch.empty(3)
    k["partials"](grid=3, block=64)(partial, x, x.numel())
    k["total"](grid=1, block=1)(out, partial, 3)


COPY = r"""
extern "C" __global__ void copy(float* y, float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""

copying = assay.Op("copied_by_cuda", lambda x: x.clone(), inputs, cases=assay.grid(n=[100]))


def copied(name, text):
    @copying.launcher(f"cuda/{name}", source=text)
    def launch(k, y, x):
        k["copy"](grid=2, block=64)(y, x, x.numel())


copied("copy", COPY)
copied("even_elements_only", COPY.replace("x[i]", "x[2 * i % n]"))
copied("works_on_its_input", COPY.replace("y[i] = x[i]", "y[i] = x[i], x[i] *= 2"))
copied("traps", COPY.replace("y[i] = x[i]", "y[i] = x[i]; else if (i == 127) __trap()"))
copied("waits_for_nobody", COPY.replace("y[i] = x[i]", "while (*(volatile float*)x != 1e9f) {}"))
