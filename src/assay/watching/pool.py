"""The parent's side of spare children: some are warm ahead of need, and each is used once."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from typing import Any

from ..processes import Child, Ended, ForkServer, TimedOut

SPARES = 4
"""One looks at the file, two judge, one times; on a GPU each holds a context of its own."""
WARM_SECONDS = 120.0
HARMLESS = frozenset({"OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"})
"""Read when something starts its threads. Other variables are read at import, perhaps too early."""


class Spares:
    """Warm children of one device. `start` has the signature of ForkServer.start."""

    def __init__(self, server: ForkServer, device: str, log: Path, count: int = SPARES):
        self._server, self._device, self._log, self._count = server, device, log, count
        self._modules: tuple[str, ...] = ()
        self._ready: list[Child] = []
        self._warming: list[Child] = []
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
        if log is None or folder is not None or set(env or {}) - HARMLESS:
            return self._server.start(job, args, env=env, log=log, folder=folder)
        while True:
            child = self._take()
            if child is None:
                return self._server.start(job, args, env=env, log=log)
            try:
                child.send(job=job, args=args, env=env or {}, log=str(log))
            except Ended:  # it died while it waited; the next one may not have
                continue
            self.used += 1
            return child

    def fill(self, modules: tuple[str, ...] | None = None) -> None:
        """Starts as many as are missing; with other modules, all of them. Waits for none."""
        with self._lock:
            old: list[Child] = []
            if modules is not None and modules != self._modules:
                old, self._ready, self._warming = [*self._ready, *self._warming], [], []
                self._modules = modules
            args = {"device": self._device, "modules": self._importable()}
            while not self._closed and len(self._ready) + len(self._warming) < self._count:
                started = self._server.start("assay.watching.spare:main", args, log=self._log)
                self._warming.append(started)
        for child in old:
            child.end()

    def wait(self) -> None:
        """Until all are warm, so that none warms up while something is timed."""
        while True:
            with self._lock:
                child = self._warming.pop() if self._warming else None
            if child is None:
                return
            if _warmed(child):
                with self._lock:
                    self._ready.append(child)

    def close(self) -> None:
        """Ends all of them."""
        with self._lock:
            self._closed = True
            left, self._ready, self._warming = [*self._ready, *self._warming], [], []
        for child in left:
            child.end()

    def _take(self) -> Child | None:
        with self._lock:
            if self._ready:
                return self._ready.pop()
            child = self._warming.pop(0) if self._warming else None
        if child is None:
            return None
        return child if _warmed(child) else self._take()

    def _importable(self) -> list[str]:
        return [name for name in self._modules if _found(name)]


def _found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _warmed(child: Child) -> bool:
    """Waits until it is warm; a child that can't be (no GPU memory is left) is ended."""
    try:
        child.receive(WARM_SECONDS)
    except (Ended, TimedOut):
        child.end()
        return False
    return True
