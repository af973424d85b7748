"""What tests share: one open Session for each test process, and `judge`, which runs the real loop.

Builds of a test run go to a cache of its own, which all its processes share.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay import cache
from assay.op import WAYS
from assay.pipeline import run
from assay.request import Progress, Request
from assay.session import Session
from assay.simt.build import runtime
from assay.target import Target, parse
from assay.types import Row

SEED = 20_260
TARGET_OPTIONS = ("like", "inputs", "fills", "kernelbench")
WRITTEN = tuple(f"{way}*" for way in WAYS if way != "compiled")
"""Every variant but `compiled`, which takes Inductor some seconds a case."""


def pytest_configure(config: pytest.Config) -> None:
    os.environ.pop("ASSAY_CHILD", None)
    if not hasattr(config, "workerinput"):  # xdist's workers inherit it
        os.environ["ASSAY_CACHE"] = tempfile.mkdtemp(prefix="assay-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop("ASSAY_CACHE"), ignore_errors=True)


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, empty but for what all compiled GPU code shares on a CPU.

    g++ takes that five seconds, and the cache that all tests share has it, or will.
    """
    runtime()
    folder = tmp_path / "cache"
    for entry in list(cache.entries()):
        if entry.what == "the runtime of compiled GPU code":
            place = folder / "builds" / entry.key[:2] / entry.key
            shutil.copytree(entry.place, place, copy_function=os.link)
    monkeypatch.setenv("ASSAY_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The one open Session of this test process: its fork server takes two seconds to start."""
    with Session(tmp_path_factory.mktemp("logs")) as opened:
        yield opened


@pytest.fixture
def judge(session: Session, tmp_path: Path) -> Callable[..., list[Row]]:
    """`judge(target, **options)` gives the rows of the real loop, untimed unless `timed=True`.

    target: the text of a file (anything with a line break in it; written below tmp_path), a path,
    what the command line takes, or a Target. options: those of `Request`, and `like`, `inputs`,
    `fills`, `kernelbench`; `case` and `seed` as there. `compiled` is left out unless asked for by
    `variants=()` or by name.
    """

    def judged(target: str | Path | Target, **options: Any) -> list[Row]:
        more = {name: options.pop(name) for name in TARGET_OPTIONS if name in options}
        if not isinstance(target, Target):
            target = parse(str(_placed(target, tmp_path)), **more)
        options = {"timed": False, "device": "cpu", "seed": SEED, "variants": WRITTEN, **options}
        if str(options["device"]).startswith("cuda"):
            options["beside"] = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        if options["timed"]:
            options.setdefault("budget", 0.2)
        nouns = run(session, Request((target,), **options), Progress())
        return [noun for noun in nouns if isinstance(noun, Row)]

    return judged


def _placed(target: str | Path, folder: Path) -> str | Path:
    """A text as the file that holds it; anything else as it is."""
    if isinstance(target, Path) or "\n" not in target:
        return target
    path = folder / f"written{len(list(folder.glob('written*.py')))}.py"
    path.write_text(target)
    return path
