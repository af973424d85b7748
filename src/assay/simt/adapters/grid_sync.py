"""`cuda.cg.this_grid().sync()` of Numba: what CUDA links for it from libcudadevrt, as PTX.

The library is a binary. Here its two functions are written out: a handle that means nothing, and a
barrier of all blocks, at which thread 0 of each block arrives at a counter and waits for the rest.
The counter only grows, so that a later barrier waits for the next multiple of the grid's blocks.
"""

from __future__ import annotations

import re

NAMES = ("cudaCGGetIntrinsicHandle", "cudaCGSynchronize")
DECLARED = re.compile(rf"\.extern\s+\.func\s+\([^)]*\)\s*(?:{'|'.join(NAMES)})\s*\([^)]*\)\s*;")
DEFINED = """
.global .align 4 .u32 cudaCGArrived;
.func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b64 %handle;
    mov.b64 %handle, 1;
    st.param.b64 [result], %handle;
    ret;
}
.func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %other, %early;
    .reg .b32 %x, %y, %z, %blocks, %now, %all, %zero;
    bar.sync 0;
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %z, %tid.z;
    or.b32 %x, %x, %y;
    or.b32 %x, %x, %z;
    setp.ne.u32 %other, %x, 0;
    @%other bra $done;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %y, %nctaid.y;
    mov.u32 %z, %nctaid.z;
    mul.lo.u32 %blocks, %blocks, %y;
    mul.lo.u32 %blocks, %blocks, %z;
    fence.acq_rel.gpu;
    atom.acq_rel.gpu.global.add.u32 %now, [cudaCGArrived], 1;
    div.u32 %all, %now, %blocks;
    add.u32 %all, %all, 1;
    mul.lo.u32 %all, %all, %blocks;
$wait:
    ld.acquire.gpu.global.u32 %now, [cudaCGArrived];
    setp.lt.u32 %early, %now, %all;
    @%early bra $wait;
    fence.acq_rel.gpu;
$done:
    bar.sync 0;
    mov.b32 %zero, 0;
    st.param.b32 [result], %zero;
    ret;
}
"""


def linked(ptx: str) -> str:
    """The PTX of a module with the functions defined that it declares; as it is if it has none."""
    declared = DECLARED.search(ptx)
    if not declared:
        return ptx
    return ptx[: declared.start()] + DEFINED + DECLARED.sub("", ptx[declared.start() :])
