"""Kernel + Case -> Verdict.

candidate.py runs the kernel in its own process on poisoned, fenced buffers and ships every byte;
oracle.py, in another process, knows the truth in float64 and judges the bytes.
"""

import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    """Importing this package hides the function `assay.check`, so it does what that does."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from ..api import check

        return check(*args, **options)


sys.modules[__name__].__class__ = _Verb
