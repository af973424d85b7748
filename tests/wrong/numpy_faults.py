"""NumPy kernels (`python`): wrong forms, wrong memory, wrong values, answers that were kept."""

import threading
import time

import numpy as np

import assay

EXPECT = {
    "python/column": ("wrong shape", "(200, 1), expected (200,)"),
    "python/keeps_float64": ("wrong dtype", "float64, expected float32"),
    "python/the_input_itself": ("shares memory", "output 0 lies in the memory of x"),
    "python/in_place": ("changed its input", "x, not declared as mutated"),
    "python/empty": ("wrong value", "element"),
    "python/half_written": ("not written", "100 of 200 elements of output 0, first at [100]"),
    "python/after_the_end": ("wrote outside", "1 value after the end of output 0"),
    "python/kept": ("stale answer", "returned the answer of the call before"),
    "python/third_call": ("not the same twice", "right at first, then with the same inputs"),
    "python/float16": ("lower precision", "looks like float16, declared float32"),
    "python/too_large": ("out of memory", "allocate"),
    "python/divides_by_zero": ("crashed", "ZeroDivisionError"),
    "python/hangs": ("timed out", "no answer after 2 s (run)"),
    "python/nan": ("wrong value", "1 NaN where the reference has none"),
    "python/thread_left": ("unfinished", "output 0"),
    "python/patches_a_clock": ("tampered", "time.perf_counter_ns"),
    "python/refuses": ("not supported", "float32"),
    "eager/refuses": ("not supported", "float32"),
}
OPTIONS = {"deadline": 2.0}
IDS = {
    "python/column": "V24",
    "python/keeps_float64": "V24 I8",
    "python/the_input_itself": "V15",
    "python/in_place": "V13",
    "python/half_written": "V10",
    "python/after_the_end": "V12",
    "python/kept": "V17",
    "python/third_call": "V14",
    "python/float16": "V20",
    "python/too_large": "L10",
    "python/hangs": "L8",
    "python/nan": "V7 X26",
    "python/thread_left": "V18",
    "python/patches_a_clock": "V18",
    "python/refuses": "I9",
    "eager/refuses": "I9",
}
TWIN = {
    "python/half_written": "python/written",
    "python/after_the_end": "python/written",
}


def inputs(make, n):
    return (make.uniform(n, low=1.0, high=2.0),)


op = assay.Op("squared", lambda x: x * x, inputs, cases=assay.grid(n=[200]))


@op.variant("python/numpy")
def by_numpy(x):
    """Right."""
    return x.numpy() * x.numpy()


@op.launcher("python/written")
def written(y, x):
    """Right."""
    y.numpy()[:] = x.numpy() ** 2


@op.variant("python/column")
def column(x):
    return (x.numpy() * x.numpy())[:, None]


@op.variant("python/keeps_float64")
def keeps_float64(x):
    return x.numpy() * x.numpy().astype("float64")


@op.variant("python/the_input_itself")
def the_input_itself(x):
    return x.numpy()


@op.variant("python/in_place")
def in_place(x):
    a = x.numpy()
    a *= a
    return a.copy()


@op.variant("python/empty")
def empty(x):
    return np.zeros(x.shape, dtype=np.float32)


@op.launcher("python/half_written")
def half_written(y, x):
    y.numpy()[:100] = x.numpy()[:100] ** 2


@op.launcher("python/after_the_end")
def after_the_end(y, x):
    y.numpy()[:] = x.numpy() ** 2
    y.as_strided((1,), (1,), y.storage_offset() + len(x)).numpy()[:] = 0


answers = []


@op.variant("python/kept")
def kept(x):
    answers.append(x.numpy() * x.numpy())
    return answers[0].copy()


calls = []


@op.variant("python/third_call")
def third_call(x):
    calls.append(None)
    return x.numpy() * x.numpy() * (2 if len(calls) > 2 else 1)


@op.variant("python/float16")
def float16(x):
    return (x.numpy().astype(np.float16) * x.numpy().astype(np.float16)).astype(np.float32)


@op.variant("python/too_large")
def too_large(x):
    return np.empty(1 << 50, dtype=np.float32)


@op.variant("python/divides_by_zero")
def divides_by_zero(x):
    return x.numpy() * x.numpy() * (1 // 0)


@op.variant("python/hangs")
def hangs(x):
    while True:
        pass


@op.variant("python/nan")
def nan(x):
    y = x.numpy() * x.numpy()
    y[7] = np.nan
    return y


@op.variant("python/thread_left")
def thread_left(x):
    y = np.empty(x.shape, dtype=np.float32)

    def write():
        time.sleep(0.05)
        y[:] = x.numpy() * x.numpy()

    threading.Thread(target=write).start()
    return y


@op.variant("python/patches_a_clock")
def patches_a_clock(x):
    clock = time.perf_counter_ns
    time.perf_counter_ns = lambda: clock() // 2
    return x.numpy() * x.numpy()


@op.variant("python/refuses")
def refuses(x):
    raise assay.NotSupported("float32; supported: float64")


@op.variant("eager/refuses")
def eager_refuses(x):
    raise assay.NotSupported("float32; supported: float64")
