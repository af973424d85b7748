"""Gradients of layernorm and rmsnorm in Triton: a program stays for many rows, and sums over them.

held_gradient_kernel  every so manieth row, whole in registers, where what it adds to dw and db
                      stays until its last row
partials_kernel       adds these: one program for COLUMNS neighbouring columns, ROWS parts at a time

Parts are added in a fixed order. CENTRED is layernorm, which takes the mean off and has db.

shapes  x, dx, dy: (rows, n); w, dw, db: n; partial: (programs, 2, n), without CENTRED (programs, n)
bytes   3 * rows * n * itemsize, and the parts twice
FLOPs   15 * rows * n; without CENTRED 11 * rows * n
"""

import triton
import triton.language as tl

from .pointwise_triton import inverse_root, mean_of, wide


@triton.jit
def held_gradient_kernel(
    dx, partial, dy, x, w, rows, n, EPS: tl.constexpr, CENTRED: tl.constexpr, COLUMNS: tl.constexpr
):
    me = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < n
    scale = wide(tl.load(w + column, mask=inside, other=0))
    of_w = tl.zeros_like(scale)
    of_b = tl.zeros_like(scale)
    for row in range(me, rows, tl.num_programs(0)):
        at = row * tl.full([COLUMNS], 1, tl.int64) * n + column  # may pass 2**31
        d = wide(tl.load(x + at, mask=inside, other=0))
        g = wide(tl.load(dy + at, mask=inside, other=0))
        if CENTRED:
            d = tl.where(inside, d - mean_of(tl.sum(d, 0), n), 0)
        rstd = inverse_root(mean_of(tl.sum(d * d, 0), n) + EPS)
        h = d * rstd
        scaled = g * scale
        slope = scaled - h * mean_of(tl.sum(scaled * h, 0), n)
        if CENTRED:
            slope -= mean_of(tl.sum(scaled, 0), n)
            of_b += g
        of_w += g * h
        tl.store(dx + at, (rstd * slope).to(dx.dtype.element_ty), inside)
    kinds = 2 if CENTRED else 1
    mine = partial + me.to(tl.int64) * kinds * n + column
    tl.store(mine, of_w, inside)
    if CENTRED:
        tl.store(mine + n, of_b, inside)


@triton.jit
def partials_kernel(
    dw, db, partial, parts, n, CENTRED: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr
):
    kinds = 2 if CENTRED else 1
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    of_w = tl.zeros([ROWS, COLUMNS], partial.dtype.element_ty)
    of_b = tl.zeros([ROWS, COLUMNS], partial.dtype.element_ty)
    for start in range(0, parts, ROWS):
        part = start + tl.arange(0, ROWS)[:, None]
        inside = (part < parts) & (column < n)
        at = partial + part.to(tl.int64) * kinds * n + column
        of_w += tl.load(at, mask=inside, other=0)
        if CENTRED:
            of_b += tl.load(at + n, mask=inside, other=0)
    place = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(dw + place, tl.sum(of_w, 0).to(dw.dtype.element_ty), place < n)
    if CENTRED:
        tl.store(db + place, tl.sum(of_b, 0).to(db.dtype.element_ty), place < n)
