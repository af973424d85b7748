"""`assay fuse`: a formula to an Op file with one kernel a way."""

from __future__ import annotations

from pathlib import Path

from ..errors import AssayError
from ..fusing.expression import RESERVED, parse
from ..fusing.file import written
from .beginning import new_module

TAKEN = {*RESERVED, "reference", "inputs", "moved", "slope", "by_cuda", "by_triton"}
"""Names that the file defines."""


def run(formula: str, to: Path) -> int:
    """Writes TO and the .cu beside it. Raises AssayError for a formula that it can't read."""
    chain = parse(formula)
    beside = to.with_suffix(".cu")
    if to.stem in TAKEN or to.stem in chain.inputs:
        raise AssayError(f"writing {to}: the file uses the name {to.stem} itself; give another one")
    for path in (to, beside):
        new_module(path)
    made = written(chain, to.stem)
    to.write_text(made.python)
    beside.write_text(made.cuda)
    steps = f"{len(chain.steps)} step{'' if len(chain.steps) == 1 else 's'}"
    print(f"wrote {to} and {beside.name}: {steps} of {', '.join(chain.inputs)} in one kernel")
    print(f"next:  assay check {to}\nthen:  assay bench {to}")
    return 0
