"""What is to be run under compute-sanitizer, as data. Without torch, as the parent."""

from __future__ import annotations

import msgspec

from ..target import Target
from ..types import Case, Scalar
from ..verdict.protocol import Spec

DONE = "done.json"
"""Written beside the job when the call has ended: {word, reason}, both empty if it ended well."""


class SanitizeJob(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one variant."""

    target: Target
    op: str
    variant: str
    knobs: dict[str, Scalar]
    case: Case
    specs: tuple[Spec, ...]
    seed: int
    device: str
    arch: str
