"""Arithmetic on large tensors a chunk at a time: sums, differences, the largest share."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy
import torch

CHUNK = 1 << 15
"""Elements worked on at a time: they and their truth stay in a core's cache, and torch works on so
few in one thread, which does not wait for another that a candidate keeps from its core."""

ON_GPU = 1 << 24
"""The same on a GPU, where each chunk costs launches and some a wait for their result."""
BYTES = 1 << 17
LARGE = 1 << 20
"""Elements from which several threads share them."""
Result = TypeVar("Result")


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

    def work(part: range) -> None:
        room = room_for(truth.abs() if truth.is_complex() else truth)
        for start in part:
            right, far, out = (t[start : start + part.step] for t in flats)
            size = torch.abs(right, out=room[: out.numel()])
            if at_zero:
                torch.mul(size == 0, at_zero, out=out)
            else:
                out.zero_()
            out.add_(far, alpha=of_moved).add_(always)
            out.add_(size.mul_(of_truth))

    in_parts(work, made)
    return made


def add_in_square(total: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> None:
    """total becomes sqrt(total^2 + (after - before)^2); what is not finite counts as no change.

    total: contiguous, for a copy of it would be what is written.
    """
    flats = [total.view(-1), before.reshape(-1), after.reshape(-1)]

    def work(part: range) -> None:
        room = room_for(before)
        for start in part:
            most, one, other = (t[start : start + part.step] for t in flats)
            far = apart(other, one, room).nan_to_num_(0.0, 0.0, 0.0)
            torch.hypot(most, far, out=most)  # squares would overflow from 1e154 on

    in_parts(work, total)


def chunk_of(like: torch.Tensor) -> int:
    """Elements worked on at a time where a tensor lies."""
    return CHUNK if like.device.type == "cpu" else ON_GPU


def room_for(like: torch.Tensor) -> torch.Tensor:
    """Memory for the differences of one chunk: fresh memory for each would be most of the time."""
    return like.new_empty(min(chunk_of(like), like.numel()))


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
    flats = [t.to(truth.device).reshape(-1) for t in (out, truth, allowed)]

    def work(part: range) -> tuple[float, int, float]:
        worst, where, squares = 0.0, 0, 0.0
        room = room_for(truth)
        for start in part:
            mine, right, most = (t[start : start + part.step] for t in flats)
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

    found = in_parts(work, truth)
    # A NaN is the largest of all, which max() alone would not say.
    worst, where, _ = max(found, key=lambda one: math.inf if math.isnan(one[0]) else one[0])
    return worst, where, sum(squares for _, _, squares in found)


def all_within(out: torch.Tensor, truth: torch.Tensor, of_truth: float, always: float) -> bool:
    """Whether |out - truth| <= of_truth |truth| + always everywhere; False with any NaN."""
    flats = [t.to(truth.device).reshape(-1) for t in (out, truth)]

    def work(part: range) -> bool:
        room = room_for(truth)
        for start in part:
            mine, right = (t[start : start + part.step] for t in flats)
            most = right.abs().mul_(of_truth).add_(always)
            if not bool((apart(mine, right, room) <= most).all()):
                return False
        return True

    return all(in_parts(work, truth))


def in_parts(work: Callable[[range], Result], like: torch.Tensor) -> list[Result]:
    """What `work` gives for ranges of chunk starts, one a thread where a tensor is large."""
    count, threads = like.numel(), torch.get_num_threads()
    if count < LARGE or threads == 1 or like.device.type != "cpu":
        return [work(range(0, count, chunk_of(like)))]
    size = -(-count // (threads * CHUNK)) * CHUNK
    parts = [range(start, min(start + size, count), CHUNK) for start in range(0, count, size)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))


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
