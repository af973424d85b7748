"""CUDA kernels that are right for the declared sizes and layouts alone: grids, vectors, bounds."""

import assay

HOSTILE = True
EXPECT = {
    "cuda/row_in_grid_y": ("did not launch", "grid y = 65,537, limits 1 to 65,535"),
    "cuda/launches_nothing": ("did not launch", "grid y = 0, limits 1 to 65,535"),
    "cuda/four_at_a_time": ("crashed", "no multiple of 16"),
    "cuda/four_at_the_end": ("read outside", "across the end of x"),
    "cuda/one_block": ("did not launch", "threads a block, limit 1,024"),
    "cuda/blind_to_strides": ("wrong value", "element"),
}
IDS = {
    "cuda/row_in_grid_y": "L5 X28",
    "cuda/launches_nothing": "I7",
    "cuda/four_at_a_time": "I6",
    "cuda/four_at_the_end": "I6 V12",
    "cuda/one_block": "X20 L2",
    "cuda/blind_to_strides": "I5",
}
TWIN = {
    "cuda/row_in_grid_y": "cuda/row_in_grid_x",
    "cuda/launches_nothing": "cuda/row_in_grid_x",
    "cuda/four_at_a_time": "cuda/four_if_aligned",
    "cuda/four_at_the_end": "cuda/four_if_aligned",
    "cuda/one_block": "cuda/row_in_grid_x",
    "cuda/blind_to_strides": "cuda/row_in_grid_x",
}

ROWS = r"""
extern "C" __global__ void negate(float* y, const float* x, int rows, int n) {
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[row * n + i] = -x[row * n + i];
}
"""


VALUES = ("nan", "inf", "masked", "zeros", "equal", "wide", "huge", "tiny", "denormal")
"""Nothing here depends on them."""


def inputs(make, rows):
    return (make.normal(rows, 3),)


op = assay.Op("negated", lambda x: -x, inputs, cases=assay.grid(rows=[30]), excludes=VALUES)


def variant(name, text=ROWS, swapped=False, wide=False, always=False, layouts="contiguous"):
    @op.launcher(f"cuda/{name}", source=text, layouts=layouts)
    def launch(k, y, x):
        rows, n = x.shape
        grid = (1, rows) if swapped else rows
        if x.numel() or always:
            k["negate"](grid=grid, block=max(1, rows) if wide else 4)(y, x, rows, n)


variant("row_in_grid_x")
variant("row_in_grid_y", ROWS.replace("blockIdx.x", "blockIdx.y"), swapped=True)
variant("launches_nothing", ROWS.replace("blockIdx.x", "blockIdx.y"), swapped=True, always=True)
variant("one_block", wide=True)
variant("blind_to_strides", layouts="any")

FOURS = r"""
extern "C" __global__ void negate(float* y, const float* x, long long n) {
    const long long i = 4ll * (blockIdx.x * blockDim.x + threadIdx.x);
    const bool aligned = ((unsigned long long)x | (unsigned long long)y) % 16 == 0;
    if (i + 4 <= n && aligned) {
        const float4 v = *(const float4*)(x + i);
        *(float4*)(y + i) = make_float4(-v.x, -v.y, -v.z, -v.w);
    } else {
        for (int j = 0; j < 4 && i + j < n; j++) y[i + j] = -x[i + j];
    }
}
"""


def flat_inputs(make, n):
    return (make.normal(n),)


flat = assay.Op(
    "negated_by_fours",
    lambda x: -x,
    flat_inputs,
    cases=assay.grid(n=[100]),
    excludes=VALUES,
)


def fours(name, text):
    @flat.launcher(f"cuda/{name}", source=text)
    def launch(k, y, x):
        if y.numel():
            k["negate"](grid=-(-y.numel() // 256), block=64)(y, x, y.numel())


fours("four_if_aligned", FOURS)
fours("four_at_a_time", FOURS.replace(" && aligned", ""))
fours("four_at_the_end", FOURS.replace("i + 4 <= n && aligned", "i < n && aligned"))
