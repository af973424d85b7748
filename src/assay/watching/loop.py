"""The watch itself: notices saves, abandons what is stale, gives events in the order they come."""

from __future__ import annotations

import contextlib
import importlib.util
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AssayError, TargetError
from ..request import Progress, Request, chosen_device, conditions_of
from ..session import Session
from ..types import Machine, Row, Strength
from .files import POLL_SECONDS, Files
from .judging import ABANDONED, CLOSED, Finished, Judging, Looked, Setting, Timed
from .oracles import Oracles
from .pool import Spares


@dataclass(frozen=True)
class Saved:
    """A save was noticed; number 0 is the file as it was found."""

    save: int
    files: tuple[Path, ...]
    at: float
    """When the last of them was written, seconds since the epoch, as the file system says."""


@dataclass(frozen=True)
class Mistake:
    """A version that can't be judged: it does not import, or its Op is at fault."""

    save: int
    text: str


@dataclass(frozen=True)
class Done:
    """A version is judged and timed."""

    save: int
    rows: tuple[Row, ...]
    """Every row that holds for it, those kept from earlier versions too."""


Event = Machine | Saved | Looked | Row | Strength | Timed | Mistake | Done


class Watch:
    """One target, watched until `close`. Whoever iterates over `events` keeps it going."""

    def __init__(self, session: Session, request: Request, progress: Progress):
        """Raises AssayError where there is nothing to watch, or no such device."""
        if len(request.targets) != 1:
            raise AssayError(f"--watch watches one target, and {len(request.targets)} were given")
        self._session, self._request, self._progress = session, request, progress
        self._items: queue.Queue[tuple[int, Any]] = queue.Queue()
        self._target = request.targets[0]
        self._root = _file_of(self._target.file, self._target.module)
        self._judging: Judging | None = None
        self.machine = session.machine()
        device = chosen_device(request.device, self.machine)
        conditions = conditions_of(request, self._target, self.machine, device)
        self.spares = Spares(session.server, device, session.log("spare"), session.say)
        session.start = self.spares.start
        self._own = session.part()
        """Holds the oracles, which outlive versions."""
        self._setting = Setting(
            request=request,
            conditions=conditions,
            machine=self.machine,
            oracles=Oracles(self._own, conditions),
            spares=self.spares,
            progress=progress,
            rows={},
        )

    def events(self) -> Iterator[Event]:
        """What happens, as it happens; never ends by itself."""
        yield self.machine
        files, save = Files.now([self._root]), 0
        yield Saved(save, (), time.time())
        while True:
            judging = self._begin(save, files)
            changed: list[Path] = []
            while not changed:
                yield from self._next(judging)
                changed = judging.files.changed()
            save += 1
            files = judging.files.settled()
            at = max((m[0] / 1e9 for p in changed if (m := files.marks[p])), default=time.time())
            yield Saved(save, tuple(changed), at)

    def close(self) -> list[Event]:
        """Ends everything; the rows that waited for their turn, with the reason."""
        if self._judging is not None:
            self._judging.stop(CLOSED)
        self.spares.close()
        self._own.close()
        left: list[Event] = []
        with contextlib.suppress(queue.Empty):
            while True:
                _, item = self._items.get_nowait()
                left += [item] if isinstance(item, (Row, Strength)) else []
        return left

    def _begin(self, save: int, files: Files) -> Judging:
        """Judges a version; the one before is ended meanwhile, not first."""
        before = self._judging
        tell = self._items.put
        judging = Judging(
            self._setting, self._session.part(), save, files, lambda item: tell((save, item))
        )
        if before is not None:
            threading.Thread(target=before.stop, args=(ABANDONED,)).start()
        self.spares.fill()  # those that the version before took
        judging.start(before)
        self._judging = judging
        return judging

    def _next(self, judging: Judging) -> Iterator[Event]:
        """The next event, or none within POLL_SECONDS. Raises what is Assay's own fault."""
        try:
            save, item = self._items.get(timeout=POLL_SECONDS)
        except queue.Empty:
            return
        if isinstance(item, AssayError):
            if save == judging.save:
                yield Mistake(save, str(item))
        elif isinstance(item, BaseException):
            raise item
        elif isinstance(item, Finished):
            if save == judging.save:
                rows = judging.rows()
                self.spares.fill(_modules(rows) if rows else None)
                yield Done(save, tuple(rows))
        else:
            yield item


MODULES = {
    "triton": ("triton",),
    "cuda": ("assay.ways.cuda", "cuda.core", "cuda.bindings.nvrtc"),
    "numba": ("numba.cuda",),
    "cpp": ("assay.ways.cpp",),
    "extension": ("assay.ways.extension", "torch.utils.cpp_extension"),
}
"""Of each way, what takes time to import; none of it is the user's."""


def _modules(rows: list[Row]) -> tuple[str, ...]:
    """Libraries that the next version will want."""
    ways = sorted({row.way for row in rows})
    return tuple(name for way in ways for name in MODULES.get(way, ()))


def _file_of(file: str, module: str) -> Path:
    """The file to watch from the start. Raises TargetError if the module has none."""
    if file:
        return Path(file)
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise TargetError(f"--watch: {module} is no module with a file; give the file itself")
    return Path(spec.origin)
