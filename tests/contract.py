"""`contract(fn, x, ...)` asserts all that every public torch operator must keep."""

from __future__ import annotations

from typing import Any

import assay
from assay.types import ABSENT, FAIL, Row

NEEDS_GPU = {"side stream", "second device", "CUDA graph"}


def contract(fn: Any, *inputs: Any, absent: set[str] = frozenset(), **options: Any) -> list[Row]:
    """The rows of `assay.check_operator`, none of which fails and all of which ran.

    absent: names of checks that do not apply, each of which must then say so; those that need a
    GPU may be absent where the inputs are on the CPU.
    """
    rows = assay.check_operator(fn, *inputs, **options)
    failed = [f"{row.variant}: {row.word}: {row.reason}" for row in rows if row.outcome == FAIL]
    assert not failed, "\n".join(failed)
    missing = {row.variant for row in rows if row.outcome == ABSENT}
    on_gpu = any(row.device.startswith("cuda") for row in rows)
    assert missing - (set() if on_gpu else NEEDS_GPU) == set(absent)
    return rows
