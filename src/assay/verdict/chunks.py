"""Arithmetic on large tensors a chunk at a time: sums, differences, the largest share."""

from __future__ import annotations

import math

import numpy
import torch

CHUNK = 1 << 15
"""Elements worked on at a time: they and their truth stay in a core's cache, and torch works on so
few in one thread, which does not wait for another that a candidate keeps from its core."""

BYTES = 1 << 17


def summed(
    truth: torch.Tensor,
    moved: torch.Tensor,
    of_truth: float,
    of_moved: float,
    always: float,
    at_zero: float,
) -> torch.Tensor:
    """of_truth |truth| + of_moved moved + always, and at_zero more where the truth is 0."""
    made = torch.empty(truth.shape, dtype=moved.dtype, device=truth.device)
    flats = truth.reshape(-1), moved.reshape(-1), made.view(-1)
    room = room_for(truth.abs() if truth.is_complex() else truth)
    for start in range(0, made.numel(), CHUNK):
        right, far, out = (t[start : start + CHUNK] for t in flats)
        size = torch.abs(right, out=room[: out.numel()])
        if at_zero:
            torch.mul(size == 0, at_zero, out=out)
        else:
            out.zero_()
        out.add_(far, alpha=of_moved).add_(always)
        out.add_(size.mul_(of_truth))
    return made


def add_in_square(total: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> None:
    """total becomes sqrt(total^2 + (after - before)^2); what is not finite counts as no change."""
    flats = [t.reshape(-1) for t in (total, before, after)]
    room = room_for(before)
    for start in range(0, total.numel(), CHUNK):
        most, one, other = (t[start : start + CHUNK] for t in flats)
        far = apart(other, one, room).nan_to_num_(0.0, 0.0, 0.0)
        torch.hypot(most, far, out=most)  # squares would overflow from 1e154 on


def room_for(like: torch.Tensor) -> torch.Tensor:
    """Memory for the differences of one chunk: fresh memory for each would be most of the time."""
    return like.new_empty(min(CHUNK, like.numel()))


def apart(one: torch.Tensor, other: torch.Tensor, room: torch.Tensor) -> torch.Tensor:
    """|one - other|, in `room` where it is real."""
    difference = torch.sub(one, other, out=room[: one.numel()])
    return difference.abs() if difference.is_complex() else difference.abs_()


def largest_share(
    out: torch.Tensor, truth: torch.Tensor, allowed: torch.Tensor, *, lenient: bool = False
) -> tuple[float, int, float]:
    """Largest |error| / allowed, its place, and the sum of squares; NaN as soon as there is one.

    lenient: a share that is not finite counts 0.
    """
    worst, where, squares = 0.0, 0, 0.0
    flats = [t.to(truth.device).reshape(-1) for t in (out, truth, allowed)]
    room = room_for(truth)
    for start in range(0, flats[0].numel(), CHUNK):
        mine, right, most = (t[start : start + CHUNK] for t in flats)
        share = apart(mine, right, room).div_(most)
        if lenient:
            share.nan_to_num_(0.0, 0.0, 0.0)
        top = float(share.max())
        if not top <= worst:
            worst, where = top, start + int(share.argmax())
        squares += float(share.square_().sum())
        if math.isnan(top):
            break
    return worst, where, squares


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two runs of bytes are equal. In one thread, and without memory for a copy."""
    if one.numel() != other.numel():
        return False
    pairs = one.cpu().numpy(), other.cpu().numpy()
    for start in range(0, one.numel(), BYTES):
        mine, right = (array[start : start + BYTES] for array in pairs)
        if len(mine) % 8 == 0:
            mine, right = mine.view(numpy.uint64), right.view(numpy.uint64)
        if not numpy.array_equal(mine, right):
            return False
    return True


def root_mean(squares: list[float], outs: list[torch.Tensor]) -> float | None:
    """Root mean square over all elements; None without any."""
    count = sum(out.numel() for out in outs)
    return math.sqrt(sum(squares) / count) if count else None
