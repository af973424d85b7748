"""`assay export`: a variant as code of its own, in a new folder."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import msgspec

from .. import ways
from ..cases import parse_values
from ..errors import AssayError
from ..session import Session
from ..target import parse

SECONDS = 300.0
NEXT = {
    "cuda": "cd {to} && make run",
    "extension": "cd {to} && pip install --no-build-isolation . && python -m pytest tests",
}


def run(target: str, variant: str, case: str, arch: str, to: Path) -> None:
    """Writes the files and says what to do with them. Raises AssayError."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise AssayError(f"exporting to {to}: something is there already; give a new folder")
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        folder = session.folder()
        args = {
            "target": msgspec.to_builtins(parse(target)),
            "wanted": variant,
            "case": parse_values(case) if case else {},
            "arch": arch or _arch(session),
            "folder": str(folder),
        }
        name = f"export {variant}"
        said = session.ask("assay.export.job:main", args, name=name, seconds=SECONDS)
        shutil.copytree(folder, to, dirs_exist_ok=True)
    print(f"{said['label']}, {said['case']}")
    for file in said["files"]:
        print(f"wrote {to / file}")
    print(f"next:  {NEXT[said['way']].format(to=to)}")


def _arch(session: Session) -> str:
    gpus = session.machine().gpus
    if not gpus:
        return ways.DEFAULT_ARCH
    major, minor = gpus[0].capability
    return f"sm_{major}{minor}"
