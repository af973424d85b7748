"""What one command holds: the fork server, running children, scratch space, the machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from .errors import AssayError
from .machine import cores
from .processes import PRELOAD, Child, Ended, ForkServer, TimedOut
from .types import Machine

PROBE_SECONDS = 120.0
SHM = Path("/dev/shm")
SHM_BYTES = 4 << 30
"""Scratch goes to memory where this much is free: tensors pass through it."""


class Session:
    """Opened once a command; `close` leaves no process and no file behind."""

    def __init__(
        self,
        logs: Path,
        say: Callable[[str], None] = lambda _: None,
        server: ForkServer | None = None,
    ):
        """server: one to share, which somebody else closes; default: one of its own."""
        self.server = server or ForkServer((*PRELOAD, "assay.jobs") if PRELOAD else ())
        self._owns_server = server is None
        self.start: Callable[..., Child] = self.server.start
        """How a child is started; a watch takes one that is warm already."""
        self.say = say
        self.logs = logs
        self.logs.mkdir(parents=True, exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(prefix="assay-", dir=_scratch_root()))
        self.stopped = threading.Event()
        self._children: set[Child] = set()
        self._lock = threading.Lock()
        self._numbers = 0
        self._machine: Machine | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every child, the server, and removes the scratch space."""
        self.stop()
        if self._owns_server:
            self.server.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def part(self) -> Session:
        """A session on the same fork server whose children end, and are stopped, apart."""
        part = Session(self.logs, self.say, self.server)
        part.start, part._machine = self.start, self._machine
        return part

    def stop(self) -> None:
        """Ends every child now; who waits for one gets Ended."""
        self.stopped.set()
        with self._lock:
            children = list(self._children)
        for child in children:
            child.end()

    @contextmanager
    def child(
        self, job: str, args: dict[str, Any], *, name: str, env: dict[str, str] | None = None
    ) -> Iterator[Child]:
        """A child that is ended on the way out. Its output goes to a log named after it."""
        if self.stopped.is_set():
            raise Stopped
        child = self.start(job, args, env=env, log=self.log(name))
        with self._lock:
            self._children.add(child)
        try:
            if self.stopped.is_set():  # stop() may have looked before this child was known
                raise Stopped
            yield child
        finally:
            child.end()
            with self._lock:
                self._children.discard(child)

    def log(self, name: str) -> Path:
        return self.logs / f"{''.join(c if c.isalnum() else '-' for c in name)}.log"

    def log_tail(self, name: str, lines: int = 12) -> str:
        """The last lines that a child printed."""
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])
        return ""

    def folder(self) -> Path:
        """A new empty scratch folder."""
        with self._lock:
            self._numbers += 1
            folder = self.scratch / str(self._numbers)
        folder.mkdir()
        return folder

    def machine(self) -> Machine:
        """What this machine is, asked in a child, once. Raises AssayError if it can't be known."""
        if self._machine is None:
            answer = self.ask("assay.machine:main", {}, name="machine", seconds=PROBE_SECONDS)
            self._machine = msgspec.convert(answer["machine"], Machine)
        return self._machine

    def ask(
        self,
        job: str,
        args: dict[str, Any],
        *,
        name: str,
        seconds: float,
        env: dict[str, str] | None = None,
        linger: bool = False,
    ) -> dict[str, Any]:
        """One answer of a child that does one thing. Raises AssayError with its log's end.

        linger: nobody waits until it has ended, which takes longer than the answer may.
        """
        with contextlib.ExitStack() as stack:
            child = stack.enter_context(self.child(job, args, name=name, env=env))
            try:
                answer = child.receive(seconds)
            except TimedOut:
                raise AssayError(
                    f"{name}: no answer within {seconds:.0f} s\n{self.log_tail(name)}".rstrip()
                ) from None
            except Ended as ended:
                tail = self.log_tail(name)
                raise AssayError(
                    f"{name}: the process ended ({ended.status.label})\n{tail}".rstrip()
                ) from None
            if linger:
                threading.Thread(target=stack.pop_all().close).start()
        if "mistake" in answer:
            raise AssayError(answer["mistake"])
        return answer


class Stopped(Exception):
    """The command was interrupted: no new child is started."""


def _scratch_root() -> str | None:
    if SHM.is_dir() and os.access(SHM, os.W_OK):
        space = shutil.disk_usage(SHM)
        if space.free >= SHM_BYTES:
            return str(SHM)
    return None


def threads_for(workers: int) -> int:
    """Threads of each of several children that run at once."""
    return max(1, cores() // max(1, workers))
