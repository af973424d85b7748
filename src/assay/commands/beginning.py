"""`assay show --from-compiled`, `--fork` and `--lineage`: files that begin with generated code."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .. import ways
from ..cases import parse_values
from ..describe import OpFacts, VariantFacts
from ..errors import AssayError, NotRun
from ..inside import lineage
from ..inside.from_compiled import started
from ..op import way_of
from ..pipeline import describe
from ..report import units
from ..session import Session
from ..target import parse


def from_compiled(target: str, inputs: list[str], case: str, arch: str, to: Path | None) -> int:
    """Writes the file and says what to do with it; exit code 3 if it can't be written so."""
    parsed = parse(target, inputs=tuple(inputs))
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        try:
            made = started(
                session, parsed, parse_values(case) if case else {}, arch or ways.DEFAULT_ARCH
            )
        except NotRun as reason:
            print(f"assay: {target}: not written: {reason}", file=sys.stderr)
            return 3
    path = to or Path(f"{made.op}_compiled.py")
    new_module(path)
    path.write_text(made.text)
    kernels = units.count(len(made.kernels), "kernel")
    other = "--input" if inputs else "--case"
    print(f"wrote {path}: {kernels} for {made.case or 'its one case'}; another size: {other}")
    print(f"next:  assay check {path}\nthen:  assay bench {path}")
    return 0


def new_module(path: Path) -> None:
    """Raises AssayError unless a module, or what lies beside it, can be written there."""
    if path.exists():
        raise AssayError(f"writing {path}: it is there already; give another file with --to")
    if path.suffix not in (".py", ".cu") or not path.stem.isidentifier():
        raise AssayError(f"writing {path}: give the name of a Python module, such as gelu_fast.py")


def fork(target: str, only: list[str], to: Path) -> int:
    """Writes a copy of a file that names it as its parent."""
    parsed = parse(target)
    if not parsed.file:
        raise AssayError(f"forking {target}: give a file of your own, or --from-compiled")
    new_module(to)
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        _, variant = _variant(describe(session, parsed), target, only)
    to.write_text(lineage.forked(Path(parsed.file), variant.source_hash))
    print(f"wrote {to}, a new version of {Path(parsed.file).name} ({variant.source_hash})")
    return 0


def _variant(ops: list[OpFacts], target: str, only: list[str]) -> tuple[OpFacts, VariantFacts]:
    """The variant whose versions are meant: the one that -k names, else the first of Triton."""
    if len(ops) > 1:
        names = ", ".join(op.name for op in ops)
        raise AssayError(f"{target}: it holds {names}; name one: {target}:{ops[0].name}")
    wanted = only[0] if only else "triton"
    for variant in ops[0].variants:
        if wanted in (variant.name, variant.way):
            return ops[0], variant
    names = ", ".join(v.name for v in ops[0].variants)
    raise AssayError(f"{target}: no variant {wanted}; say which with -k, of {names}")


def show(target: str, only: list[str]) -> int:
    """Prints the versions of a file, the oldest first; exit code 0."""
    parsed = parse(target)
    if not parsed.file:
        raise AssayError(f"the lineage of {target}: give a file, whose LINEAGE says its ancestors")
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        op, variant = _variant(describe(session, parsed), target, only)
    path = Path(parsed.file)
    now = lineage.Version(variant.source_hash, path.name)
    known = [*reversed(lineage.ancestors(path)), now]
    kept, way = lineage.history(Path.cwd()), way_of(variant.name)
    known[-1:-1] = lineage.edits(kept, op.name, way, known)
    _print(lineage.table(kept, op.name, way, known), lineage.edited(known, path.parent))
    for problem in kept.unread:
        print(f"assay: {problem}", file=sys.stderr)
    return 0


def _print(versions: list[lineage.Seen], edited: dict[str, str]) -> None:
    width = max(len(seen.version.what) for seen in versions)
    for seen in versions:
        told = [seen.verdict or "in no run"]
        if seen.version.hash in edited:
            told.insert(0, edited[seen.version.hash])
        if seen.seconds is not None:
            told.append(units.seconds(seen.seconds))
        if seen.against is not None:
            told.append(f"{seen.against:.2f}x as fast as compiled")
        print(f"{seen.version.hash}  {seen.version.what:<{width}}  {', '.join(told)}")
    cases = dict.fromkeys(seen.case for seen in versions if seen.case)
    if cases:
        print(f"times are of the slowest case of the last run: {'; '.join(cases)}")
