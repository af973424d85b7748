"""Sides that are measured here and now: two revisions, or two variants, in fresh processes.

Processes differ in where memory lies and in what was tuned, so one a side proves little. Those of
two revisions alternate in random order; two variants are in one schedule in each process.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..errors import AssayError
from ..rows import Run, decode
from ..types import replace
from .child import Order
from .model import Side
from .read import of

ENDING_SECONDS = 30.0
"""What a bench may take to clean up when it is interrupted."""


@dataclass(frozen=True)
class Request:
    """How to measure."""

    processes: int = 3
    order: Order = field(default_factory=lambda: Order(target=""))
    """Everything but the target, the variants and the seed of a process."""


@dataclass(frozen=True)
class Revision:
    """A target as it is in a commit, or, without one, in the working tree."""

    text: str
    commit: str
    target: str


def revision_of(text: str) -> Revision | None:
    """What `REVISION:FILE.py[:NAME]` means; None if it is no such thing. Raises AssayError for a
    revision or a file that there is not."""
    head, _, target = text.partition(":")
    file = target.partition(":")[0]
    if not file.endswith(".py") or head.endswith(".py"):
        return None
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{head}^{{commit}}")
    if not commit:
        raise AssayError(
            f"{text}: git knows no revision {head!r} in {Path.cwd()}; "
            "a revision is given as HEAD~1:kernels.py, with the file's path from here"
        )
    if _git("cat-file", "-t", f"{commit}:./{file}") != "blob":
        raise AssayError(f"{text}: revision {head} has no file {file} in {Path.cwd()}")
    return Revision(text, commit, target)


def revisions(a: str, b: str, variants: Sequence[str], given: Request) -> tuple[Side, Side]:
    """Both sides, measured in alternating processes. Raises AssayError."""
    sides = [revision_of(text) or _working(text) for text in (a, b)]
    order = replace(given.order, variants=tuple(variants))
    turns = random.SystemRandom()
    found: tuple[list[Any], list[Any]] = ([], [])
    kept = Run(), Run()
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(exported(side)) for side in sides]
        done = 0
        for _ in range(given.processes):
            seed = secrets.randbelow(1 << 31) if order.seed is None else order.seed
            for index in turns.sample((0, 1), 2):
                done += 1
                _tell(f"process {done} of {2 * given.processes}: {sides[index].text}")
                told = replace(order, target=sides[index].target, seed=seed)
                found[index].extend(bench(told, folders[index], sides[index].text, kept[index]))
    for name, side, run in zip("AB", sides, kept):
        _tell(f"{name}, {side.text}: rows in {_place(run)}")
    _tell("the same again, from these: assay compare last~1 last")
    return of(sides[0].text, found[0]), of(sides[1].text, found[1])


def variants(target: str, names: Sequence[str], given: Request) -> Side:
    """Two variants of a target, timed together in each process. Raises AssayError."""
    wanted = tuple(dict.fromkeys(name.split()[0] for name in names))
    nouns, kept = list[Any](), Run()
    for number in range(given.processes):
        _tell(f"process {number + 1} of {given.processes}: {target}")
        told = replace(given.order, target=target, variants=wanted)
        nouns += bench(told, Path.cwd(), target, kept)
    _tell(f"rows in {_place(kept)}; the same again: assay compare last, and both -k")
    return of(target, nouns)


def bench(order: Order, folder: Path, name: str, kept: Run) -> list[Any]:
    """Nouns of one bench in a fresh process that runs in `folder`; they are kept as well.

    Raises AssayError.
    """
    command = [sys.executable, "-m", "assay.comparison.child", msgspec.json.encode(order).decode()]
    source = str(Path(__file__).resolve().parents[2])  # this Assay, whatever lies in `folder`
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            out, said = child.communicate()
        except KeyboardInterrupt:  # the child was told as well, and ends what it began
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=ENDING_SECONDS)
            child.kill()
            raise
    if child.returncode:
        raise AssayError(f"benching {name}: {said.strip() or f'it ended with {child.returncode}'}")
    nouns = [decode(line, where=f"the bench of {name}") for line in out.splitlines()]
    for noun in nouns:
        kept.write(noun)
    return nouns


def _working(text: str) -> Revision:
    file = text.partition(":")[0]
    if not file.endswith(".py") or not Path(file).is_file():
        raise AssayError(
            f"{text}: a revision is compared with another, or with a file of the working tree; "
            f"there is no file {file} here (rows are compared with rows)"
        )
    return Revision(text, "", text)


@contextlib.contextmanager
def exported(side: Revision) -> Iterator[Path]:
    """The present folder as it is in a commit, or in the working tree, as a copy."""
    top, prefix = Path(_git("rev-parse", "--show-toplevel")), _git("rev-parse", "--show-prefix")
    with tempfile.TemporaryDirectory(prefix="assay-revision-") as name:
        folder = Path(name)
        if side.commit:
            _unpack(top, side.commit, folder)
        else:
            _copy(top, folder)
        yield folder / prefix


def _unpack(top: Path, commit: str, folder: Path) -> None:
    packed = folder / ".assay-revision.tar"
    _git("archive", "--output", str(packed), commit, folder=top)
    with tarfile.open(packed) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # Python 3.10.11, 3.11.3 and older know none (PEP 706); it is git's own archive
            archive.extractall(folder)
    packed.unlink()


def _copy(top: Path, folder: Path) -> None:
    """What git tracks, as it is now, and what it does not ignore."""
    listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=top)
    for name in filter(None, listed.split("\0")):
        if (top / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(top / name, folder / name)


def _git(*words: str, folder: Path | None = None) -> str:
    """What git prints; empty if it fails. Raises AssayError without git."""
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise AssayError("comparing revisions: there is no git on PATH; install it") from None
    return done.stdout.strip() if done.returncode == 0 else ""


def _place(kept: Run) -> Path:
    return kept.path.relative_to(kept.root.parent.parent)


def _tell(text: str) -> None:
    print(f"assay: {text}", file=sys.stderr, flush=True)
