"""What children do, imported in the fork server, so that each of them finds it there.

What judges and times is noted there too: before any code of the user's, for all children at once.
"""

from __future__ import annotations

import torch

from . import describe  # noqa: F401
from .clock import timing  # noqa: F401
from .verdict import candidate, oracle  # noqa: F401
from .verdict.tamper import taken
from .watching import look, spare  # noqa: F401

taken()
if torch.cuda.is_initialized():
    raise SystemExit("importing Assay started CUDA: a fork of this process could not use it")
