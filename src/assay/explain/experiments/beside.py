"""What a user waits for several variants of one case, beside one another: the parent's side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ... import ways
from ...errors import NotRun
from ...op import way_of
from ...session import Session
from ...target import Target
from ...types import Scalar

ONE = ""
"""The name of one operator of torch on one element: what a call takes whatever it does."""
SECONDS = 0.5
DEADLINE = 60.0


def waited(
    session: Session,
    target: Target,
    variants: Sequence[str],
    case: dict[str, Scalar],
    device: str,
    seconds: float = SECONDS,
) -> dict[str, float]:
    """Median seconds that a user waits for a call, by variant; of ONE as well.

    seconds: of sampling, in all, beyond the fewest rounds. Raises NotRun where one can't run.
    """
    args: dict[str, Any] = {
        "target": msgspec.to_builtins(target),
        "variants": list(variants),
        "case": case,
        "device": device,
        "seconds": seconds,
    }
    env: dict[str, str] = {}
    for variant in variants:
        env |= ways.here(way_of(variant), device).env
    answer = session.ask(
        "assay.explain.experiments.waiting:main",
        args,
        name=f"wait {variants[0]}",
        seconds=DEADLINE,
        env=env,
    )
    if "not_run" in answer:
        raise NotRun(answer["not_run"])
    found: dict[str, float] = answer["waited"]
    return found
