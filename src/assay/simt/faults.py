"""Compiled code that can't be run here, and who says so."""

from __future__ import annotations

from ..errors import NotRun
from .ptx import Place


class NotCheckable(NotRun):
    """Compiled code that can't be run here: which instruction, and where."""

    uncheckable = True
    """Something else may still be able to judge it: an interpreter, a simulator."""

    def __init__(self, what: str, places: tuple[Place, ...] = ()):
        place = f" at {places[-1]}" if places else ""
        super().__init__(f"not checkable: {what}{place}")
        self.what, self.places = what, places
