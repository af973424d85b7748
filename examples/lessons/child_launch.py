"""A kernel that launches a kernel: what happens here, and why it is left out.

    assay check child_launch.py

Launches from the device need relocatable code, linked with cudadevrt. NVRTC compiles single, whole
programs, so the compiler refuses it, and Assay says so: `did not build`, with its words. A kernel
built elsewhere may do it. Blocks that wait for one another in one cooperative launch do here what
small child launches are used for (docs/roofs.md, grid sync: 0.9 us on an H100).
"""

import assay

parent = assay.Op(
    "parent", lambda x: x + 1, lambda make, n: (make.normal(n),), cases=assay.grid(n=[64])
)


@parent.launcher("cuda", source="child_launch.cu")
def launch(k, y, x):
    k["parent"](grid=1, block=1, shared=0)(y, x)
