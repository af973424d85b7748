"""Which variants of an Op a user's patterns mean."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from .describe import OpFacts, VariantFacts
from .errors import OpError


def chosen(op: OpFacts, patterns: tuple[str, ...]) -> list[VariantFacts]:
    """The variants that patterns mean; all if there are none. Raises OpError for none found."""
    if not patterns:
        return list(op.variants)
    found = matching(op.variants, patterns)
    if not found:
        raise OpError(
            f"{op.name}: no variant is called {' or '.join(patterns)}; "
            f"there are {', '.join(v.name for v in op.variants)}"
        )
    return found


def matching(variants: Iterable[VariantFacts], patterns: tuple[str, ...]) -> list[VariantFacts]:
    """Those that patterns mean; all if there are none."""
    variants = list(variants)
    names = {v.name for v in variants}
    # A variant's own name means just that one; else a way's name means all of its variants.
    return [
        v
        for v in variants
        if not patterns
        or any(fnmatch.fnmatchcase(v.name, p) or (p not in names and v.way == p) for p in patterns)
    ]
