"""What a branch costs: lanes of one warp that part run one path after the other.

    assay count branches.py:branches -k cuda/per_lane --case "n=4096 paths=8"
    assay bench branches.py

Each element takes one of `paths` ways through the same work. In `per_lane` neighbours part: every
warp runs all the paths. In `per_warp` whole warps part: each runs one. Neither adds a launch: a
branch is an instruction, not a kernel.
"""

import assay

ROUNDS = 16


def reference(x, paths):
    return x * 2.0**ROUNDS  # every path doubles ROUNDS times


def inputs(make, n, paths):
    return (make.normal(n), paths)


branches = assay.Op(
    "branches",
    reference,
    inputs,
    flops=lambda n, paths: ROUNDS * n,
    bytes=lambda n, paths: 8 * n,
    excludes=("x:huge",),  # 2^16 times it is beyond float32
    cases=assay.grid(n=[4096, 1 << 24], paths=[1, 2, 4, 8, 16, 32]),
)


def launch(k, y, x, paths, name):
    n = x.numel()
    if n:
        k[name](grid=-(-n // 256), block=256, shared=0)(y, x, n, paths, two())


def two():
    return 2.0  # a value that the compiler does not know, so that no path is folded into another


@branches.launcher("cuda/per_lane", source="branches.cu")
def per_lane(k, y, x, paths):
    launch(k, y, x, paths, "per_lane")


@branches.launcher("cuda/per_warp", source="branches.cu")
def per_warp(k, y, x, paths):
    launch(k, y, x, paths, "per_warp")
