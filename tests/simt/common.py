"""Kernels in PTX for the tests of the engine: a body, with all that stands around it.

Line n of the body is line n of `k.cu`, so that faults name it. These registers are there at the
start: %t, %b, %n (tid.x, ctaid.x, ntid.x), %g (the number of the thread in the grid), %l (laneid),
%a0 %a1 ... (the pointers that are passed), %q0 %q1 ... (the same plus 4 * %g, a thread's element).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import assay.simt as simt

HEAD = """.version 8.3
.target sm_80
.address_size 64
"""
REGISTERS = """.reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b64 %d<40>;
.reg .f32 %f<20>; .reg .f64 %e<20>; .reg .b32 %t; .reg .b32 %b; .reg .b32 %n; .reg .b32 %g;
.reg .b32 %l; .reg .b64 %a<9>; .reg .b64 %q<9>; .reg .b64 %off;
"""
START = """mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %l, %laneid;
mad.lo.u32 %g, %b, %n, %t; mul.wide.u32 %off, %g, 4;
"""
ROOM = ".shared .align 16 .b8 room[512];"
"""Shared memory for a declaration."""


def text(body: str, pointers: int = 1, declare: str = "", name: str = "k") -> str:
    """The PTX of a module: declarations, and one kernel that takes so many pointers."""
    parameters = ", ".join(f".param .u64 p{i}" for i in range(pointers))
    loads = "".join(
        f"ld.param.u64 %a{i}, [p{i}]; add.s64 %q{i}, %a{i}, %off;\n" for i in range(pointers)
    )
    lines = "".join(f".loc 1 {n} 0\n{line}\n" for n, line in enumerate(body.split("\n"), 1))
    return (
        f"{HEAD}{declare}\n.visible .entry {name}({parameters})\n{{\n{REGISTERS}{START}{loads}"
        f'{lines}ret;\n}}\n.file 1 "k.cu"\n'
    )


@lru_cache(maxsize=256)
def kernel(body: str, pointers: int = 1, declare: str = "") -> simt.Kernel:
    return simt.load(text(body, pointers, declare))


def run(
    body: str,
    *args: Any,
    grid: Sequence[int] = (1,),
    block: Sequence[int] = (32,),
    declare: str = "",
    **options: Any,
) -> simt.Launched:
    """One launch of a body with arrays as its pointers."""
    return kernel(body, len(args), declare).launch(grid, block, list(args), **options)


def zeros(count: int, kind: type = np.uint32) -> np.ndarray:
    return np.zeros(count, kind)


def words(launched: simt.Launched) -> set[str]:
    return {fault.word for fault in launched.faults}


def only(launched: simt.Launched) -> simt.Fault:
    """The one fault there is."""
    assert len(launched.faults) == 1, [str(fault) for fault in launched.faults]
    return launched.faults[0]
