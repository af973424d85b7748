"""Where PTX ISA puts each element of a matrix for mma.sync: (lane, register, part of the register).

Written from the text of the sections "Matrix Fragments for mma.*", formula by formula, and not from
the runtime's own. `i` counts a lane's elements from the low part of its first register on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Place = Callable[[int, int, int], tuple[int, int]]
"""(group of the lane, lane in its group, i) -> (row, column)."""

# Key: rows of A, columns of A, bits of an element.
A: dict[tuple[int, int, int], Place] = {
    (8, 4, 64): lambda g, t, i: (g, t),
    (16, 4, 64): lambda g, t, i: (g + 8 * (i == 1), t),
    (16, 8, 64): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
    (16, 16, 64): lambda g, t, i: (
        g if i % 2 == 0 else g + 8,
        i * 2 + t if i % 2 == 0 else i * 2 - 2 + t,
    ),
    (16, 4, 32): lambda g, t, i: (g if i == 0 else g + 8, t),
    (16, 8, 32): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    (16, 8, 16): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    (16, 16, 16): lambda g, t, i: (
        g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
        t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8,
    ),
    (8, 16, 8): lambda g, t, i: (g, t * 4 + i),
    (16, 16, 8): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    (16, 32, 8): lambda g, t, i: (
        g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
        t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16,
    ),
    (8, 32, 4): lambda g, t, i: (g, t * 8 + i),
    (16, 32, 4): lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    (16, 64, 4): lambda g, t, i: (
        g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
        t * 8 + (i & 7) if i < 16 else t * 8 + (i & 7) + 32,
    ),
}
# Key: rows of B, bits of an element. Every B has 8 columns.
B: dict[tuple[int, int], Place] = {
    (4, 64): lambda g, t, i: (t, g),
    (8, 64): lambda g, t, i: (t if i == 0 else t + 4, g),
    (16, 64): lambda g, t, i: (t + i * 4, g),
    (4, 32): lambda g, t, i: (t, g),
    (8, 32): lambda g, t, i: (t if i == 0 else t + 4, g),
    (8, 16): lambda g, t, i: (t * 2 + i, g),
    (16, 16): lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    (16, 8): lambda g, t, i: (t * 4 + i, g),
    (32, 8): lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    (32, 4): lambda g, t, i: (t * 8 + i, g),
    (64, 4): lambda g, t, i: (t * 8 + (i & 7) + (0 if i < 8 else 32), g),
}
# Key: rows of C. All types of accumulators have one layout.
C: dict[int, Place] = {
    8: lambda g, t, i: (g, t * 2 + i),
    16: lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
}


def places(place: Place, rows: int, columns: int) -> np.ndarray:
    """[lane, i, 2]: row and column of each element; every element is held exactly once."""
    each = rows * columns // 32
    made = np.array([[place(lane >> 2, lane % 4, i) for i in range(each)] for lane in range(32)])
    flat = made[..., 0] * columns + made[..., 1]
    assert sorted(flat.ravel()) == list(range(rows * columns))
    return made


def put(bits: np.ndarray, place: Place, width: int) -> np.ndarray:
    """[..., rows, columns] of elements' bits as [..., register, lane] of 32-bit (64) registers."""
    rows, columns = bits.shape[-2:]
    at = places(place, rows, columns)
    elements = bits[..., at[..., 0], at[..., 1]].astype(np.uint64)  # [..., lane, i]
    per = max(1, 32 // width)
    parts = elements.reshape(*elements.shape[:-1], -1, per)
    shifts = np.arange(per, dtype=np.uint64) * np.uint64(width % 64)
    return np.moveaxis((parts << shifts).sum(-1, dtype=np.uint64), -1, -2)


def take(registers: np.ndarray, place: Place, width: int, rows: int, columns: int) -> np.ndarray:
    """The inverse of `put`."""
    at = places(place, rows, columns)
    per = max(1, 32 // width)
    shifts = np.arange(per, dtype=np.uint64) * np.uint64(width % 64)
    lanes = np.moveaxis(registers.astype(np.uint64), -2, -1)  # [..., lane, register]
    mask = np.uint64((1 << width) - 1)
    elements = ((lanes[..., None] >> shifts) & mask).reshape(*lanes.shape[:-1], -1)
    made = np.zeros((*registers.shape[:-2], rows, columns), np.uint64)
    made[..., at[..., 0], at[..., 1]] = elements
    return made
