"""Assay: is a GPU kernel right, how fast is it really, and why.

The public names; each is imported when it is first used, so that `import assay` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import ops as ops
    from .api import bench as bench
    from .api import check as check
    from .api import counts as counts
    from .api import coverage_map as coverage_map
    from .cases import grid as grid
    from .errors import AssayError as AssayError
    from .errors import NotSupported as NotSupported
    from .op import Op as Op
    from .op import Variant as Variant
    from .operators.contract import check_operator as check_operator
    from .operators.define import torch_op as torch_op
    from .types import Case as Case
    from .types import Row as Row
    from .ways.extension import load_source

    load_inline = load_source

__version__ = "0.1.0"

_PLACES = {
    "AssayError": "errors",
    "Case": "types",
    "NotSupported": "errors",
    "Op": "op",
    "Row": "types",
    "Variant": "op",
    "bench": "api",
    "check": "api",
    "check_operator": "operators.contract:check_operator",
    "counts": "api",
    "coverage_map": "api",
    "grid": "cases",
    "load_inline": "ways.extension:load_source",
    "torch_op": "operators.define:torch_op",
}
__all__ = [*_PLACES, "ops"]


def __getattr__(name: str) -> Any:
    if name == "ops":
        return importlib.import_module(".ops", __name__)
    if name in _PLACES:
        module, _, inner = _PLACES[name].partition(":")
        return getattr(importlib.import_module(f".{module}", __name__), inner or name)
    raise AttributeError(f"assay has no {name!r}; it has {', '.join(_PLACES)}")
