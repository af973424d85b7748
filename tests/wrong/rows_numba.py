"""Numba kernels: barriers, bounds, blocks, races; arrays on the host and dtypes that it lacks."""

import torch
from numba import cuda, float32

import assay
from assay import NotSupported

OPTIONS = {"deadline": 8.0}
EXPECT = {
    "numba/no_barrier": ("read before written", ""),
    "numba/barrier_in_a_branch": ("divergent barrier", ""),
    "numba/one_block_short": ("not written", "36 of 100 elements of output 0, first at [64]"),
    "numba/no_bounds": ("read outside", "x"),
    "numba/block_of_1089": ("did not launch", "block=(1089, 1, 1)"),
    "numba/next_element": ("wrong value", "element"),
    "numba/works_on_its_input": ("changed its input", "x"),
    "numba/races": ("race", ""),
    "numba/lane_that_left": ("absent lanes", ""),
    "numba/half_is_refused": ("not supported", "float16; supported: float32"),
    "numba/no_bfloat16": ("not supported", "bfloat16"),
    "numba/kernel_without_end": ("timed out", ""),
    "numba/no_such_name": ("did not build", "no_such"),
}
IDS = {
    "numba/no_barrier": "V16",
    "numba/barrier_in_a_branch": "X35",
    "numba/one_block_short": "V10",
    "numba/no_bounds": "V12 X28",
    "numba/block_of_1089": "X20 L2",
    "numba/next_element": "V8",
    "numba/works_on_its_input": "V13 O3",
    "numba/races": "V16",
    "numba/lane_that_left": "V16",
    "numba/half_is_refused": "I9",
    "numba/no_bfloat16": "I11",
    "numba/kernel_without_end": "L8",
    "numba/no_such_name": "B13",
}
TWIN = {
    "numba/no_barrier": "numba/reversed",
    "numba/barrier_in_a_branch": "numba/reversed",
    "numba/one_block_short": "numba/copied",
    "numba/no_bounds": "numba/copied",
    "numba/block_of_1089": "numba/copied",
    "numba/next_element": "numba/copied",
    "numba/works_on_its_input": "numba/copied",
    "numba/races": "numba/atomics",
    "numba/lane_that_left": "numba/reversed",
    "numba/half_is_refused": "numba/any",
    "numba/no_bfloat16": "numba/any",
    "numba/kernel_without_end": "numba/copied",
    "numba/no_such_name": "numba/copied",
}


def inputs(make, n):
    return (make.normal(n),)


@cuda.jit
def reverse(y, x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[63 - t]


@cuda.jit
def reverse_at_once(y, x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    y[t] = s[63 - t]


@cuda.jit
def reverse_in_a_branch(y, x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t < 40:
        cuda.syncthreads()
    y[t] = s[63 - t]


@cuda.jit
def reverse_by_lanes(y, x):
    t = cuda.threadIdx.x
    if t % 32 == 0:
        y[t] = x[63 - t]
        return
    y[t] = cuda.shfl_xor_sync(-1, x[63 - (t ^ 1)], 1)


reversing = assay.Op("reversed", lambda x: x.flip(0), inputs, cases=assay.grid(n=[64]))


def reversed_by(name, kernel):
    @reversing.launcher(f"numba/{name}")
    def launch(y, x):
        kernel[1, 64](y, x)


reversed_by("reversed", reverse)
reversed_by("no_barrier", reverse_at_once)
reversed_by("barrier_in_a_branch", reverse_in_a_branch)
reversed_by("lane_that_left", reverse_by_lanes)


@cuda.jit
def copy(y, x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[i]


@cuda.jit
def copy_unbounded(y, x):
    i = cuda.grid(1)
    y[i] = x[i]


@cuda.jit
def copy_next(y, x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[(i + 1) % x.shape[0]]


@cuda.jit
def copy_and_clear(y, x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[i]
        x[i] = 0


@cuda.jit
def copy_for_ever(y, x):
    i = cuda.grid(1)
    while i < x.shape[0]:
        y[i] = x[i]


@cuda.jit
def copy_by_name(y, x):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = no_such[i]  # noqa: F821


copying = assay.Op("copied_by_numba", lambda x: x.clone(), inputs, cases=assay.grid(n=[100]))


def copied(name, kernel=copy, blocks=2, threads=64):
    @copying.launcher(f"numba/{name}")
    def launch(y, x):
        kernel[blocks, threads](y, x)


copied("copied")
copied("one_block_short", blocks=1)
copied("no_bounds", copy_unbounded)
copied("block_of_1089", threads=1089)
copied("next_element", copy_next)
copied("works_on_its_input", copy_and_clear)
copied("kernel_without_end", copy_for_ever)
copied("no_such_name", copy_by_name)


@cuda.jit
def total_by_atomics(y, x):
    i = cuda.grid(1)
    cuda.atomic.add(y, 0, x[i])


@cuda.jit
def total_without(y, x):
    i = cuda.grid(1)
    y[0] += x[i]


def whole_numbers(make, n):
    return (make.integers(n, low=1, high=9, dtype="int32"),)


total = assay.Op(
    "total_by_numba",
    lambda x: x.sum(dtype=torch.int32).reshape(1),
    whole_numbers,
    cases=assay.grid(n=[128]),
)


def added(name, kernel):
    @total.launcher(f"numba/{name}")
    def launch(y, x):
        y.zero_()
        kernel[2, 64](y, x)


added("atomics", total_by_atomics)
added("races", total_without)


def narrow(make, n, dtype):
    return (make.normal(n, dtype=dtype),)


halves = assay.Op(
    "copied_halves", lambda x: x.clone(), narrow, cases=assay.grid(n=[64], dtype=["float16"])
)


@halves.launcher("numba/any")
def any_dtype(y, x):
    copy[1, 64](y, x)


@halves.launcher("numba/half_is_refused")
def half_is_refused(y, x):
    """Where the Op promises float16, a refusal by name is still no answer."""
    if x.dtype != torch.float32:
        raise NotSupported(f"{x.dtype}; supported: float32")
    copy[1, 64](y, x)


@halves.launcher("numba/no_bfloat16")
def no_bfloat16(y, x):
    copy[1, 64](y, x.bfloat16())
