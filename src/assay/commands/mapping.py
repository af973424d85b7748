"""`assay map`: which program or thread reads and writes which elements, as text and picture."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..cases import parse_values
from ..errors import AssayError, NotRun
from ..mapping import mapped
from ..mapping.model import CoverageMap, Tensor
from ..mapping.svg import svg
from ..mapping.text import findings, text
from ..target import parse


def run(
    target: str,
    variant: str,
    case: str,
    arch: str,
    *,
    by: str,
    output: str,
    stepped: bool,
    as_json: bool,
    to: Path | None,
) -> int:
    """Prints the map; exit code 0, 1 if an output is not covered or something went wrong, 3 if it
    can't be run here."""
    if by not in ("block", "thread"):
        raise AssayError(f"--by {by}: say block or thread")
    values = parse_values(case) if case else {}
    try:
        found = mapped(parse(target), variant, values, arch, stepped=stepped)
    except NotRun as reason:
        print(f"assay: no map: {reason}", file=sys.stderr)
        return 3
    only = _chosen(found, output) if output else ""
    if as_json:
        for tensor in found.tensors.values():
            if not only or tensor.name == only:
                print(msgspec.json.encode(facts(found, tensor)).decode())
    else:
        print(text(found, by=by, only=only))
    if to is not None:
        to.write_text(svg(found, by=by, only=only))
        print(f"assay: drawn in {to}", file=sys.stderr)
    for said in (*findings(found), *found.faults):
        print(f"assay: {said}", file=sys.stderr)
    uncovered = any(
        t.role == "output" and t.known and t.never_written for t in found.tensors.values()
    )
    return 1 if uncovered or found.faults else 0


def _chosen(found: CoverageMap, output: str) -> str:
    """The tensor that `--output` names: by name, or an output by its number."""
    name = f"output {output}" if output.isdigit() else output
    if name not in found.tensors:
        known = ", ".join(found.tensors)
        raise AssayError(f"--output {output}: there is no {name!r} in this call; there are {known}")
    return name


def facts(found: CoverageMap, tensor: Tensor) -> dict[str, Any]:
    """A tensor as an object for other programs; who wrote and read, as runs of equal elements."""
    made: dict[str, Any] = {
        "kind": "map",
        "op": found.op,
        "variant": found.label,
        "case": found.case,
        "judge": found.judge,
        "launches": [
            {"kernel": one.kernel, "grid": one.grid, "block": one.block} for one in found.launches
        ],
        "tensor": tensor.name,
        "role": tensor.role,
        "dtype": tensor.dtype,
        "shape": tensor.shape,
    }
    if not tensor.known:
        return {**made, "known": False}
    return {
        **made,
        "known": True,
        "written": int(tensor.written.sum()),
        "elements": tensor.size,
        "written_by": runs(tensor.written_by),
        "write_counts": runs(tensor.write_counts),
        "writers": runs(tensor.writers),
        "read_by": runs(tensor.read_by),
        "read_counts": runs(tensor.read_counts),
        "readers": runs(tensor.readers),
    }


def runs(values: Any) -> list[list[int]]:
    """[value, how many elements in a row have it], in row-major order."""
    flat = np.asarray(values).reshape(-1)
    if not flat.size:
        return []
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    return [[int(flat[a]), int(b - a)] for a, b in itertools.pairwise(starts)]
