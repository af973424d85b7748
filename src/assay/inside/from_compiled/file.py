"""The text of an Op file around generated kernels: reference, inputs, case, variant, lineage."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass

from ...adapt import like
from ...errors import NotRun
from ...op import Op, cost
from ...single import Single
from ...target import Target
from ...types import Scalar
from .program import Written
from .standalone import Bound, Taken, take

VIEW = '''def view(x, size, stride, offset):
    """Other sizes of the same memory; offset in elements."""
    return x.as_strided(size, stride, x.storage_offset() + offset)
'''
FILE = '''"""{title}

Written by `assay show --from-compiled`: {made}. For one case:
{case}. Edit it, then:

    assay check FILE      assay bench FILE      assay show FILE --lineage

Before a change that you may want to go back from: assay show FILE --fork NEW.py
"""

{imports}
LINEAGE = [
    # (hash of the source, as rows have it; what it was), the parent first
    ({parent}, {what}),
]


{definitions}

{op} = assay.Op(
    "{op}",
    {reference},
    {inputs},
    cases=[{values}],
{declared})


{kernels}


def this_case({arguments}):
    same = {condition}
    return same or "these kernels are made for {label} alone"


@{op}.variant("{variant}", knobs={knobs}, when=this_case)
def by_inductor({parameters}):
{body}
'''


@dataclass(frozen=True)
class About:
    """Where a file comes from."""

    parent: str
    """Hash of the source that was compiled."""
    what: str
    made: str
    note: str


def text(one: Single, target: Target, written: Written, names: list[str], about: About) -> str:
    """The whole file. Raises NotRun where the reference or the inputs can't leave their file."""
    op, values = one.op, one.case.values
    taken = Taken()
    reference, inputs = _taken(op, target, taken)
    if target.inputs:
        values = {"dtype": _dtype(target)}
    definitions = [*taken.texts.values(), *([VIEW] if written.views else [])]
    parameters = [*names, *written.knobs]
    return FILE.format(
        title=f"{op.name} from torch.compile: what Inductor wrote for a GPU, to start from.",
        made=about.made,
        case=one.case.label or "the one there is",
        imports=_imports(taken, written),
        parent=quoted(about.parent),
        what=quoted(about.what),
        definitions="\n\n".join(definitions).rstrip() + "\n",
        op=op.name,
        reference=reference,
        inputs=inputs,
        values=f"dict({', '.join(f'{n}={quoted(v)}' for n, v in values.items())})",
        declared=_declared(one),
        kernels="\n\n\n".join(written.kernels),
        arguments=", ".join(values),
        condition=" and ".join(f"{n} == {quoted(v)}" for n, v in values.items()) or "True",
        label=_label(values),
        variant="triton/inductor",
        knobs=f"{{{', '.join(f'{quoted(n)}: [{v}]' for n, v in written.knobs.items())}}}",
        parameters=", ".join(parameters),
        body="\n".join(f"    {line}" for line in written.body),
    )


def quoted(value: object) -> str:
    """A value as Python code, strings in double quotes."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _label(values: dict[str, Scalar]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def _imports(taken: Taken, written: Written) -> str:
    """Those of others in order, then `import assay` in a block of its own."""
    lines = {"import torch", "import triton", "import triton.language as tl"}
    lines |= {*taken.imports, *written.imports} - {"import assay"}
    own = sorted(line for line in lines if line.startswith(("from assay", "import assay")))
    others = sorted(lines - set(own), key=lambda line: (line.startswith("from"), line))
    return "\n".join([*others, "", "import assay", *own]) + "\n"


def _taken(op: Op, target: Target, taken: Taken) -> tuple[str, str]:
    """Names of reference and inputs in the file, whose text is added to what is taken."""
    try:
        take(taken, op.reference, "reference")
        if target.inputs:
            taken.texts["inputs"] = _made_inputs(target)
        else:
            take(taken, op.inputs, "inputs")
    except Bound as reason:
        return _of_parent(op, target, taken, str(reason))
    return "reference", "inputs"


def _made_inputs(target: Target) -> str:
    dtype = _dtype(target)
    parts = [code.replace(f"dtype={dtype!r}", "dtype=dtype") for _, code in like.makers(target)]
    comma = "," if len(parts) == 1 else ""
    return f"def inputs(make, dtype):\n    return ({', '.join(parts)}{comma})\n"


def _dtype(target: Target) -> str:
    """That of the first input that has one."""
    for _, code in like.makers(target):
        if "dtype=" in code:
            return code.split("dtype='")[1].split("'")[0]
        if code.startswith(("make.normal", "make.uniform", "make.full")):
            return "float32"
    return "float32"


def _of_parent(op: Op, target: Target, taken: Taken, why: str) -> tuple[str, str]:
    """Reference and inputs of an importable module, which stays where it is."""
    if target.file:
        raise NotRun(
            f"{target.text}: {why}, so it can't stand in another file: write it as a plain `def` "
            "of its inputs and of modules"
        )
    taken.texts.clear()
    taken.imports = {f"import {target.module} as parent": None}
    name = next(n for n, v in vars(inspect.getmodule(op.inputs)).items() if v is op)
    return f"parent.{name}.reference", f"parent.{name}.inputs"


def _declared(one: Single) -> str:
    """What the Op promises besides, for the one case."""
    op, lines = one.op, []
    for what in ("flops", "bytes"):
        if (number := cost(op, what, one.case)) is not None:
            lines.append(f"    {what}=lambda: {number:_},\n")
    for what, empty in (("deterministic", False), ("limit", None), ("excludes", ())):
        if (value := getattr(op, what)) != empty:
            lines.append(f"    {what}={value!r},\n")
    for what in ("accept", "outputs"):
        if getattr(op, what) is not None:
            raise NotRun(f"{op.name} declares {what}=, which can't be written to another file")
    return "".join(lines)
