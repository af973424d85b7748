"""The child that imports a saved file: what is in it, which files it came from, what changed."""

from __future__ import annotations

import hashlib
import inspect
import site
import sys
import sysconfig
from pathlib import Path
from typing import Any

import msgspec

from ..cache import source_digests
from ..describe import OpFacts, facts
from ..errors import AssayError
from ..op import Op, Variant
from ..processes.channel import Channel
from ..target import Target, load
from .parts import Parts


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one version of a file holds."""

    ops: tuple[OpFacts, ...]
    files: tuple[str, ...]
    """The user's files that it was made of: Python, kernel sources, their headers."""
    core: str
    """Changes with anything that decides what the Ops are."""
    keys: dict[str, str]
    """Op and variant, as `key_of` joins them -> a digest that changes with the variant's code."""


def key_of(op: str, variant: str) -> str:
    """One name for a variant of an Op."""
    return f"{op} {variant}"


def main(channel: Channel, target: dict, case: dict, dtypes: list[str]) -> None:
    """The child's job: sends {seen: ...}, or {broken: text, files: [...]}."""
    before = set(sys.modules)
    try:
        given = msgspec.convert(target, Target)
        ops = load(given)
        channel.send(seen=msgspec.to_builtins(_seen(given, ops, before, case, dtypes)))
    except AssayError as error:
        channel.send(broken=str(error), files=sorted(map(str, own_files(before))))


def _seen(
    target: Target, ops: list[Op], before: set[str], case: dict[str, Any], dtypes: list[str]
) -> Seen:
    variants = [(op, variant) for op in ops for variant in op.variants]
    sources = {p for _, v in variants for p in map(Path, _sources(v))}
    files = {*own_files(before), *sources}
    main_file = Path(target.file) if target.file else None
    parts = Parts(main_file.read_text()) if main_file else None
    others = [p for p in files if p.suffix == ".py" and p != main_file]
    whole = [parts.core if parts else "", *(_hashed(p) for p in sorted(others))]
    return Seen(
        ops=tuple(facts(op, case, dtypes) for op in ops),
        files=tuple(sorted(map(str, files))),
        core=hashlib.sha256("".join(whole).encode()).hexdigest()[:16],
        keys={key_of(op.name, v.name): _key(v, main_file, parts) for op, v in variants},
    )


def own_files(before: set[str]) -> set[Path]:
    """Files of modules that were imported since, without those of Python, packages and Assay."""
    paths = sysconfig.get_paths()
    installed = [Path(paths[k]) for k in ("stdlib", "platstdlib", "purelib", "platlib")]
    installed += [Path(p) for p in [*site.getsitepackages(), site.getusersitepackages()]]
    found = set()
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        own = not name.startswith("assay.") or name.startswith("assay.ops.")
        if file and own and not any(folder in Path(file).parents for folder in installed):
            found.add(Path(file).resolve())
    return found


def _sources(variant: Variant) -> dict[str, str]:
    """Digest of a variant's kernel source and of every header it includes, by path."""
    if variant.source is None:
        return {}
    return source_digests([variant.source], [Path(f) for f in variant.include])


def _key(variant: Variant, main_file: Path | None, parts: Parts | None) -> str:
    """Changes with the function, what it reaches outside the core, and its kernel source."""
    code: Any = getattr(inspect.unwrap(variant.function), "__code__", None)
    own = code and main_file and Path(code.co_filename).resolve() == main_file
    function = parts.closure(code.co_name) if own and parts else ""
    text = function + "".join(sorted(_sources(variant).values()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _hashed(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
