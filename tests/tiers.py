"""Which tier a parameter of a test belongs to: plain, CI's besides, or the gallery's."""

from __future__ import annotations

from collections.abc import Collection

import pytest


def tier(name: str, plain: Collection[str], slow: Collection[str] = ()) -> tuple[object, ...]:
    """The marks of a parameter by its name: none in the plain tier, `gallery` for what is slow."""
    if name in plain:
        return ()
    return (pytest.mark.gallery if name in slow else pytest.mark.full,)
