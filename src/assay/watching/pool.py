"""The parent's side of spare children: some are warm ahead of need, and each is used once."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..processes import Child, Ended, ForkServer, TimedOut

COUNTS = {"look": 1, "judge": 3, "clock": 1}
"""Of each kind. Those that judge and time hold a context of their own on a GPU."""
KINDS = {"assay.watching.look:main": "look", "assay.clock.timing:main": "clock"}
"""Job to the kind of child that does it; any other is done by one that judges."""
WARM_SECONDS = 120.0
HARMLESS = frozenset({"OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"})
"""Read when something starts its threads. Other variables are read at import, perhaps too early."""


class Spares:
    """Warm children of one device. `start` has the signature of ForkServer.start."""

    def __init__(
        self,
        server: ForkServer,
        device: str,
        log: Path,
        say: Callable[[str], None] = lambda _: None,
    ):
        self._server, self._device, self._log, self._say = server, device, log, say
        self._modules: tuple[str, ...] = ()
        self._ready: dict[str, list[Child]] = {kind: [] for kind in COUNTS}
        self._warming: dict[str, list[Child]] = {kind: [] for kind in COUNTS}
        self._lock = threading.Lock()
        self._closed = False
        self.used = 0
        """Jobs that a warm child was given."""

    def start(
        self,
        job: str,
        args: dict[str, Any],
        *,
        env: dict[str, str] | None = None,
        log: Path | None = None,
        folder: Path | None = None,
    ) -> Child:
        """A child that does the job: a warm one, or a new one where there is none."""
        warm_enough = log is not None and folder is None and not set(env or {}) - HARMLESS
        child = self._take(KINDS.get(job, "judge")) if warm_enough else None
        while child is not None:
            try:
                child.send(job=job, args=args, env=env or {}, log=str(log))
            except Ended:  # it died while it waited; the next one may not have
                child = self._take(KINDS.get(job, "judge"))
                continue
            self.used += 1
            return child
        return self._server.start(job, args, env=env, log=log, folder=folder)

    def fill(self, modules: tuple[str, ...] | None = None) -> None:
        """Starts as many as are missing; with other modules, all of them. Waits for none."""
        old: list[Child] = []
        with self._lock:
            if modules is not None and modules != self._modules:
                old, self._modules = self._emptied(), modules
            for kind, count in COUNTS.items():
                have = len(self._ready[kind]) + len(self._warming[kind])
                for _ in range(0 if self._closed else count - have):
                    self._warming[kind].append(self._started(kind))
        for child in old:
            child.end()

    def wait(self) -> None:
        """Until all are warm, so that none warms up while something is timed."""
        for kind in COUNTS:
            while True:
                with self._lock:
                    child = self._warming[kind].pop() if self._warming[kind] else None
                if child is None:
                    break
                if self._warmed(child):
                    with self._lock:
                        self._ready[kind].append(child)

    def close(self) -> None:
        """Ends all of them."""
        with self._lock:
            self._closed = True
            left = self._emptied()
        for child in left:
            child.end()

    def _emptied(self) -> list[Child]:
        """All that are held, which are no longer held then."""
        lists = [*self._ready.values(), *self._warming.values()]
        left = [child for each in lists for child in each]
        for each in lists:
            each.clear()
        return left

    def _started(self, kind: str) -> Child:
        modules = [name for name in self._modules if _found(name)]
        args = {"kind": kind, "device": self._device, "modules": modules}
        return self._server.start("assay.watching.spare:main", args, log=self._log)

    def _take(self, kind: str) -> Child | None:
        while True:
            with self._lock:
                if self._ready[kind]:
                    return self._ready[kind].pop()
                child = self._warming[kind].pop(0) if self._warming[kind] else None
            if child is None or self._warmed(child):
                return child

    def _warmed(self, child: Child) -> bool:
        """Waits until it is warm. One that can't be, for want of memory say, is ended and told."""
        try:
            child.receive(WARM_SECONDS)
        except (Ended, TimedOut):
            child.end()
            if not self._closed:
                self._say(f"a spare child did not get warm, so a new one is started: {self._log}")
            return False
        return True


def _found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
