"""Products of matrices in CUDA C++, wrong by one edit of a grid, a block, a bound or an index."""

import torch

import assay

EXPECT = {
    "cuda/swapped_grid": ("not written", "10 of 330 elements of output 0, first at [32, 0]"),
    "cuda/block_of_33": ("did not launch", "1,089 threads a block, limit 1,024"),
    "cuda/no_bounds": ("read outside", "past the end of b"),
    "cuda/one_bound": ("read outside", "past the end of b"),
    "cuda/one_term_short": ("wrong value", "every element"),
    "cuda/transposed": ("wrong value", "element"),
    "cuda/adds_to_what_was_there": ("read before written", "output 0"),
    "cuda/forgets_a_semicolon": ("did not build", "expected a"),
    "cuda/one_argument_less": ("did not launch", "takes 6 arguments, and got 5"),
    "cuda/too_much_shared": ("did not launch", "shared memory: asked 300,000"),
    "eager/ones_by_memset": ("wrong value", "every element"),
    "eager/not_reset": ("wrong value", "every element"),
    "cuda/launched_twice": ("wrong value", "element"),
}
IDS = {
    "cuda/swapped_grid": "X12",
    "cuda/block_of_33": "X20 L2 X21",
    "cuda/no_bounds": "X28",
    "cuda/one_bound": "X28",
    "cuda/adds_to_what_was_there": "V9",
    "cuda/forgets_a_semicolon": "B13",
    "cuda/one_argument_less": "I8",
    "cuda/too_much_shared": "L1",
    "eager/ones_by_memset": "X13",
    "eager/not_reset": "X27",
    "cuda/launched_twice": "X27",
}
TWIN = {
    "cuda/swapped_grid": "cuda/right",
    "cuda/block_of_33": "cuda/right",
    "cuda/no_bounds": "cuda/right",
    "cuda/one_bound": "cuda/right",
    "cuda/one_term_short": "cuda/right",
    "cuda/transposed": "cuda/right",
    "cuda/adds_to_what_was_there": "cuda/right",
    "cuda/forgets_a_semicolon": "cuda/right",
    "cuda/one_argument_less": "cuda/right",
    "cuda/too_much_shared": "cuda/right",
    "cuda/launched_twice": "cuda/launched_once",
}

PRODUCT = r"""
// c = a^T b. shapes a: (k, m), b: (k, n), c: (m, n)
extern "C" __global__ void product(float* c, const float* a, const float* b,
                                   int m, int n, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[i * m + row] * b[i * n + column];
    c[row * n + column] = sum;
}
"""


def inputs(make, batch, hidden, outputs):
    return make.normal(batch, hidden), make.normal(batch, outputs)


op = assay.Op(
    "transposed_product",
    lambda a, b: a.t() @ b,
    inputs,
    cases=[dict(batch=4, hidden=33, outputs=10)],
)


def blocks(n, of=32):
    return -(-n // of)


def variant(name, text=PRODUCT, swapped=False, block=(32, 32), shared=0, less=0):
    @op.launcher(f"cuda/{name}", source=text)
    def launch(k, c, a, b):
        grid = (blocks(c.shape[1]), blocks(c.shape[0]))
        sizes = (*c.shape, a.shape[0])
        go = k["product"](grid=grid[::-1] if swapped else grid, block=block, shared=shared)
        go(c, a, b, *sizes[less:])


variant("right")
variant("swapped_grid", swapped=True)
variant("block_of_33", block=(33, 33))
variant("no_bounds", PRODUCT.replace("if (row >= m || column >= n) return;", ""))
variant("one_bound", PRODUCT.replace("row >= m || column >= n", "row >= m"))
variant("one_term_short", PRODUCT.replace("i < k", "i < k - 1"))
variant("transposed", PRODUCT.replace("c[row * n + column]", "c[column * m + row]"))
variant("adds_to_what_was_there", PRODUCT.replace("column] = sum", "column] += sum"))
variant("forgets_a_semicolon", PRODUCT.replace("sum;\n}", "sum\n}"))
variant("one_argument_less", less=1)
variant("too_much_shared", shared=300_000)


def gradients(make, batch, n):
    return (make.normal(batch, n),)


bias = assay.Op(
    "bias_gradient",
    lambda g: torch.ones(g.shape[0], dtype=g.dtype) @ g,
    gradients,
    cases=assay.grid(batch=[3], n=[50]),
)


@bias.variant("eager/ones_by_memset")
def ones_by_memset(g):
    """Every byte of the ones is 1, which makes them 2.4e-38."""
    ones = torch.empty(g.shape[0], dtype=g.dtype)
    ones.view(torch.uint8).fill_(1)
    return ones @ g


SGEMM = r"""
// c = a b + 3 c, all n x n
extern "C" __global__ void sgemm(float* c, const float* a, const float* b, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n) return;
    float sum = 0;
    for (int j = 0; j < n; j++) sum += a[i / n * n + j] * b[j * n + i % n];
    c[i] = sum + 3 * c[i];
}
"""


def squares(make, n):
    return make.normal(n, n), make.normal(n, n), make.full(n, n, value=1.0)


def scaled_sum(a, b, c):
    return a @ b + 3 * c


sgemm = assay.Op("sgemm", scaled_sum, squares, mutates="c", cases=assay.grid(n=[9]))


@sgemm.launcher("cuda/launched_once", source=SGEMM)
def launched_once(k, a, b, c):
    """Right."""
    k["sgemm"](grid=1, block=128)(c, a, b, c.shape[0])


@sgemm.launcher("cuda/launched_twice", source=SGEMM)
def launched_twice(k, a, b, c):
    """The second run, such as one after a warm-up, finds what the first has left in c."""
    k["sgemm"](grid=1, block=128)(c, a, b, c.shape[0])
    k["sgemm"](grid=1, block=128)(c, a, b, c.shape[0])


@sgemm.variant("eager/not_reset")
def not_reset(a, b, c):
    c.copy_(a @ b + 3 * (a @ b + 3 * c))
