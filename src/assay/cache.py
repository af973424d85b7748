"""The build cache: content decides, one process builds, the others wait, failures are not kept.

An entry is a folder named by the hash of everything that could change its content. It is built
beside its final place and renamed into it, so that no reader ever sees half an entry. The lock is
the operating system's, so it ends with its holder, however that ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from .errors import BuildError
from .types import Build

WAIT_SECONDS = 600.0
SAY_AFTER_SECONDS = 2.0


def root() -> Path:
    """Where builds are kept: $ASSAY_CACHE, else the user's cache folder."""
    return Path(os.environ.get("ASSAY_CACHE") or platformdirs.user_cache_dir("assay")) / "builds"


def place_of(key: str) -> Path:
    """The folder of an entry, whether it is there or not."""
    return root() / key[:2] / key


def key_of(parts: dict[str, Any]) -> str:
    """The name of the entry that these parts decide."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def kept(parts: dict[str, Any]) -> Path | None:
    """The folder of the entry of these parts, if it was built."""
    place = place_of(key_of(parts))
    return place if _kept(place) is not None else None


def keep_source(way: str, text: str, suffix: str) -> Path:
    """A source given as text, as a file named after its content beside the builds."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = root().parent / "sources" / f"{way}-{digest}{suffix}"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)  # whole or not at all, for others who write the same
    return path


def build(
    what: str,
    parts: dict[str, Any],
    make: Callable[[Path], str],
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Path, Build]:
    """The folder of an entry, building it if it is not there.

    what: name for people, such as `softmax cuda/online`.
    parts: everything that decides the content; JSON-able.
    make: fills a folder, returns the compiler's log; raises BuildError.
    say: told when another process is being waited for.
    """
    key = key_of(parts)
    place = place_of(key)
    start = time.monotonic()
    kept = _kept(place)
    if kept is None:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.with_suffix(".lock"), what, say):
            kept = _kept(place)
            if kept is None:
                _sweep(place)
                return place, _make(place, what, key, parts, make, start)
    with contextlib.suppress(OSError):  # a cache that is read-only, or was just cleared
        os.utime(place / "entry.json")  # shows in the listing when it was last used
    seconds = time.monotonic() - start
    return place, Build(seconds=seconds, cached=True, key=key, log=kept["log"])


def _kept(place: Path) -> dict[str, Any] | None:
    """What is noted of a whole entry; None if there is none."""
    try:
        noted: dict[str, Any] = json.loads((place / "entry.json").read_text())
    except (OSError, ValueError):
        return None
    return noted


def _sweep(place: Path) -> None:
    """Removes what a builder of this entry left when it was killed. The lock is held."""
    for left in place.parent.glob(f"{place.name}.*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)


def _make(
    place: Path,
    what: str,
    key: str,
    parts: dict[str, Any],
    make: Callable[[Path], str],
    start: float,
) -> Build:
    scratch = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        log = make(scratch)
        seconds = time.monotonic() - start
        entry = {"what": what, "seconds": seconds, "log": log, "parts": parts}
        (scratch / "entry.json").write_text(json.dumps(entry, default=str))
        os.rename(scratch, place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Build(seconds=seconds, cached=False, key=key, log=log)


class _locked:
    """Holds a lock file; while waiting, says for whom."""

    def __init__(self, path: Path, what: str, say: Callable[[str], None]):
        self.lock, self.what, self.say = FileLock(path), what, say
        self.holder = path.with_suffix(".holder")

    def __enter__(self) -> None:
        end, told = time.monotonic() + WAIT_SECONDS, False
        while True:
            try:
                self.lock.acquire(timeout=SAY_AFTER_SECONDS)
            except Timeout:
                if time.monotonic() > end:
                    raise BuildError(
                        f"waited {WAIT_SECONDS:.0f} s for {self._who()}; end it, then run again"
                    ) from None
                if not told:
                    self.say(f"waiting for {self._who()}")
                told = True
                continue
            self.holder.write_text(f"pid {os.getpid()}, building {self.what}")
            return

    def _who(self) -> str:
        try:
            return self.holder.read_text()
        except OSError:
            return f"another process, building {self.what}"

    def __exit__(self, *_: object) -> None:
        self.holder.unlink(missing_ok=True)
        self.lock.release()


@dataclass(frozen=True)
class Entry:
    """One cached build."""

    key: str
    what: str
    seconds: float
    """How long it took to build."""
    bytes: int
    used: float
    """When it was last used, seconds since the epoch."""
    place: Path


def entries() -> Iterator[Entry]:
    """Every entry, the one last used first."""
    found = []
    for path in root().glob("*/*/entry.json"):
        said = _kept(path.parent)
        if said is None or "." in path.parent.name:  # being built, or being removed
            continue
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            size = sum(p.stat().st_size for p in path.parent.rglob("*") if p.is_file())
            used = path.stat().st_mtime
            found.append(
                Entry(path.parent.name, said["what"], said["seconds"], size, used, path.parent)
            )
    yield from sorted(found, key=lambda entry: -entry.used)


def notes(entry: Entry) -> dict[str, Any]:
    """Everything noted of an entry: what, seconds, log, parts. Empty if it was just removed."""
    return _kept(entry.place) or {}


def clear(match: str = "") -> int:
    """Removes the entries whose name or key contains `match` (all if empty); how many."""
    count = 0
    for entry in list(entries()):
        if match in entry.what or entry.key.startswith(match):
            gone = Path(tempfile.mkdtemp(prefix=f"{entry.key}.", dir=entry.place.parent))
            os.rename(entry.place, gone)  # at once, so that nobody meets half an entry
            shutil.rmtree(gone, ignore_errors=True)
            count += 1
    return count


INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def source_digests(paths: Iterable[Path], folders: Iterable[Path] = ()) -> dict[str, str]:
    """Hash of each source and of every header it includes from its own or the given folders.

    Headers of the system and the toolkit are not followed: their versions are parts of the key.
    """
    digests: dict[str, str] = {}
    todo = [Path(p) for p in paths]
    search = [Path(f) for f in folders]
    while todo:
        path = todo.pop()
        if str(path) in digests:
            continue
        content = path.read_bytes()
        digests[str(path)] = hashlib.sha256(content).hexdigest()
        for name in INCLUDE.findall(content.decode(errors="replace")):
            found = next((d / name for d in [path.parent, *search] if (d / name).is_file()), None)
            if found:
                todo.append(found)
    return digests
