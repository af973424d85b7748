"""CUDA kernels whose fault is in the order of things: seen while their compiled code is watched."""

import torch

import assay

EXPECT = {
    "cuda/no_first_barrier": ("read before written", "watched.cu:20: "),
    "cuda/no_second_barrier": ("race", "watched.cu:31: "),
    "cuda/barrier_in_branch": ("divergent barrier", "watched.cu:43: "),
    "cuda/unwritten": ("read before written", "watched.cu:53: "),
    "cuda/every_block": ("race", "watched.cu:60: "),
    "cuda/absent_lane": ("absent lanes", "watched.cu:70: "),
}
IDS = "V16 X35"
TWIN = {
    "cuda/no_first_barrier": "cuda/shift",
    "cuda/no_second_barrier": "cuda/shift",
    "cuda/barrier_in_branch": "cuda/shift",
    "cuda/unwritten": "cuda/shift",
    "cuda/every_block": "cuda/shift",
    "cuda/absent_lane": "cuda/shift",
}


def reference(x):
    return torch.cat([x[1:], x[-1:]])


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("shifted", reference, inputs, cases=assay.grid(n=[256]))


def variant(name, blocks=1):
    @op.launcher(f"cuda/{name}", source="watched.cu")
    def launch(k, y, x):
        k[name](grid=blocks, block=256)(y, x, x.numel())


variant("shift")
variant("no_first_barrier")
variant("no_second_barrier")
variant("barrier_in_branch")
variant("unwritten")
variant("every_block", blocks=4)
variant("absent_lane")
