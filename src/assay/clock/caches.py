"""The cache before a sample: refilled by reads or by writes, hot, or other buffers at each call."""

from __future__ import annotations

import math

DEFAULT = {"cuda": "cold", "cpu": "hot"}
LABELS = {
    ("cuda", "cold"): "cold L2",
    ("cuda", "dirty"): "cold, dirty L2",
    ("cpu", "cold"): "cold cache",
    ("cpu", "dirty"): "cold, dirty cache",
}
COLD = frozenset(LABELS.values())
"""Labels of states in which every read misses the cache."""
UNKNOWN = "unknown L2"
"""The label where a probe was as quick after the flush as before it."""
TIMES, ENOUGH, MOST_SETS = 4, 2, 64
"""Rotated buffers are TIMES as large as the cache; below ENOUGH times it is not called rotated."""


def sets_for(working: int, cache: int) -> int:
    """How many sets of inputs and outputs of `working` bytes calls take in turn."""
    return max(1, min(MOST_SETS, math.ceil(TIMES * cache / max(1, working))))


def label(kind: str, state: str, sets: int, working: int, cache: int) -> str:
    """What a row says of its samples."""
    if state != "rotated":
        return LABELS.get((kind, state), state)
    if sets * working >= ENOUGH * cache:
        return "rotated"
    return f"rotated, {sets} sets within the cache"
