"""Probes: single accesses of one warp at chosen addresses, to learn what a card counts for each."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

NONE = 0xFFFFFFFF
SHARED, GLOBAL = 16384, 65536
"""Bytes of the memory that probes address."""
TYPES = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned",
    8: "uint2",
    16: "uint4",
}
LANES = np.arange(32)


@dataclass(frozen=True)
class Probe:
    kernel: str
    """As C++ writes it."""
    width: int
    """Bytes a lane."""
    pattern: str
    at: np.ndarray
    """[32] byte offsets; NONE: the lane sits out."""

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.pattern}"


def shared_patterns(width: int) -> dict[str, np.ndarray]:
    """Indices of elements of `width` bytes, by lane."""
    rng = np.random.default_rng(width)
    found = {
        "dense": LANES,
        "reversed": 31 - LANES,
        "one address": 0 * LANES,
        **{f"stride {k}": LANES * k for k in (2, 3, 4, 5, 8, 16, 17, 32)},
        **{f"runs of {k}": LANES // k for k in (2, 4, 8, 16)},
        **{f"repeats of {k}": LANES % k for k in (2, 4, 8, 16)},
        "pairs swapped": LANES ^ 1,
        "halves swapped": LANES ^ 16,
        "halves apart": LANES % 16 + (LANES // 16) * 64,
        "quarters apart": LANES % 8 + (LANES // 8) * 32,
        "odd and even": LANES // 2 + (LANES % 2) * 64,
    }
    for i in range(4):
        found[f"permuted {i}"] = rng.permutation(32)
        found[f"random in 32 {i}"] = rng.integers(0, 32, 32)
        found[f"random in 64 {i}"] = rng.integers(0, 64, 32)
        found[f"random {i}"] = rng.integers(0, 512, 32)
        found[f"random pairs {i}"] = np.repeat(rng.integers(0, 64, 16), 2)
    return {name: index.astype(np.int64) for name, index in found.items()}


def masks() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(9)
    return {
        "one lane": LANES == 5,
        "even lanes": LANES % 2 == 0,
        "first 8": LANES < 8,
        "first 16": LANES < 16,
        "first 17": LANES < 17,
        "lanes 12 to 19": (LANES >= 12) & (LANES < 20),
        "every fourth": LANES % 4 == 0,
        "some": rng.integers(0, 2, 32) == 1,
    }


def paired(width: int) -> dict[str, np.ndarray]:
    """Byte offsets that tell when two groups of lanes go at a time: pairs, with lanes missing."""
    rng = np.random.default_rng(width + 100)
    beside, across = LANES // 2, LANES % 2 + LANES // 4 * 2
    half, quarter = LANES < 16, LANES % 16 < 8
    found = {
        "pairs": offsets(beside, width),
        "pairs, even lanes": offsets(beside, width, LANES % 2 == 0),
        "pairs, odd lanes": offsets(beside, width, LANES % 2 == 1),
        "pairs, one lane of a pair": offsets(beside, width, (LANES + LANES // 4) % 2 == 0),
        "pairs, every other pair": offsets(beside, width, LANES % 4 < 2),
        "pairs, one missing": offsets(beside, width, LANES != 9),
        "pairs across": offsets(across, width),
        "pairs across, half of each": offsets(across, width, LANES % 4 < 2),
        "pairs across, one missing": offsets(across, width, LANES != 9),
        "pairs beside, then across": offsets(np.where(half, beside, across), width),
        "pairs beside and across by quarters": offsets(np.where(quarter, beside, across), width),
        "pairs in the first half": offsets(np.where(half, beside, LANES), width),
        "pairs in the second half": offsets(np.where(half, LANES, beside), width),
        "pairs, the second half missing": offsets(beside, width, half),
        "two lanes": offsets(LANES * 3, width, (LANES == 5) | (LANES == 20)),
        "two lanes of a half": offsets(LANES * 3, width, (LANES == 2) | (LANES == 13)),
        "four apart": offsets(LANES % 4 + LANES // 8 * 4, width),
    }
    for i in range(6):
        mask = rng.integers(0, 2, 32) == 1
        found[f"pairs, some {i}"] = offsets(rng.permutation(16)[beside], width, mask)
        found[f"pairs across, some {i}"] = offsets(rng.permutation(16)[across], width, mask)
    return found


def offsets(index: np.ndarray, width: int, mask: np.ndarray | None = None) -> np.ndarray:
    at = (index * width).astype(np.uint32)
    return at if mask is None else np.where(mask, at, np.uint32(NONE))


def on_shared(kernel: str, width: int, few: bool = False) -> list[Probe]:
    made = []
    for name, index in shared_patterns(width).items():
        if not few or not re.search(r"(random|permuted).* [23]$", name):
            made.append(Probe(kernel, width, name, offsets(index, width)))
    for name, mask in masks().items():
        made.append(Probe(kernel, width, f"dense, {name}", offsets(LANES, width, mask)))
        if not few:
            made.append(Probe(kernel, width, f"stride 4, {name}", offsets(LANES * 4, width, mask)))
    return made


def on_global(kernel: str, width: int) -> list[Probe]:
    rng = np.random.default_rng(width)
    patterns = {
        "dense": LANES,
        "dense from 1": LANES + 1,
        "reversed": 31 - LANES,
        "one address": 0 * LANES,
        "stride 2": LANES * 2,
        "stride 8": LANES * 8,
        "stride 33": LANES * 33,
        "runs of 4": LANES // 4,
        "repeats of 8": LANES % 8,
        "odd and even": LANES // 2 + (LANES % 2) * 64,
        "random in 64": rng.integers(0, 64, 32),
        "random": rng.integers(0, 2048, 32),
    }
    made = [Probe(kernel, width, n, offsets(i, width)) for n, i in patterns.items()]
    for name in ("one lane", "even lanes", "first 17", "some"):
        made.append(Probe(kernel, width, f"dense, {name}", offsets(LANES, width, masks()[name])))
    return made


def every() -> list[Probe]:
    made: list[Probe] = []
    for width, kind in TYPES.items():
        made += on_shared(f"shared_load<{kind}>", width, width < 4)
        made += on_shared(f"shared_store<{kind}>", width, width < 8)
        made += on_global(f"global_load<{kind}>", width)
        made += on_global(f"global_store<{kind}>", width)
    for width in (8, 16):
        kernel = f"shared_load<{TYPES[width]}>"
        made += [Probe(kernel, width, name, at) for name, at in paired(width).items()]
    for width, kind in ((4, "unsigned"), (8, "unsigned long long")):
        made += on_global(f"global_atomic<{kind}>", width)
        made += on_global(f"global_reduction<{kind}>", width)
    made += on_shared("shared_atomic<unsigned>", 4, True)
    made += on_shared("shared_reduction<unsigned>", 4, True)
    made += on_global("global_reduction<float>", 4)
    return made
