"""From a loop to threads: four steps of the same y[i] = w * x[i] + b.

    assay check loop_to_threads.py          all of them are right, the last element included
    assay bench loop_to_threads.py          and what each step is worth

1. `python`            the loop as anyone writes it;
2. `cuda/one_thread`   the same loop on the GPU: one thread, which is slower;
3. `cuda/strided`      the loop is dealt out: thread t of T takes t, t + T, ...; any grid will do;
4. `cuda/naive`        one thread an element: the loop's body, and an `if` in place of its end.

`loop_to_threads.cu` says what `__global__`, `__device__` and `__host__` mean on the way.
"""

import assay


def reference(x, w, b):
    return w * x + b


def inputs(make, n):
    return (make.normal(n), 1.5, -0.25)


affine = assay.Op(
    "affine",
    reference,
    inputs,
    flops=lambda n: 2 * n,
    bytes=lambda n: 8 * n,
    cases=assay.grid(n=[1000, 1 << 16, 1 << 24]),
)


def short(n):
    return n <= 1 << 16 or "a loop over so much takes minutes"


@affine.launcher("python", when=short)
def loop(y, x, w, b):
    for i in range(x.numel()):
        y[i] = w * x[i] + b


@affine.launcher("cuda/one_thread", source="loop_to_threads.cu", when=short)
def one_thread(k, y, x, w, b):
    k["one_thread"](grid=1, block=1, shared=0)(y, x, x.numel(), w, b)


@affine.launcher("cuda/strided", source="loop_to_threads.cu")
def strided(k, y, x, w, b):
    k["strided"](grid=16, block=256, shared=0)(y, x, x.numel(), w, b)


@affine.launcher("cuda/naive", source="loop_to_threads.cu")
def naive(k, y, x, w, b):
    n = x.numel()
    if n:
        k["naive"](grid=-(-n // 256), block=256, shared=0)(y, x, n, w, b)
