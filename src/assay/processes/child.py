"""The parent's end of a child: start, talk under a deadline, end, and say how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AssayError
from .channel import Channel, Closed
from .server import END_SECONDS, HARNESS_FAILED

PRELOAD = ("assay.processes.preload",) if sys.platform == "linux" else ()
"""What children find imported. Elsewhere a fork of loaded frameworks is not safe."""
START_SECONDS = 120.0


@dataclass(frozen=True)
class Status:
    """How a child ended: its exit code, or the signal that ended it."""

    code: int | None
    signal: int | None
    left: tuple[int, ...] = ()
    """Processes that could not be ended within the deadline."""
    harness: bool = False
    """Whether Assay's own machinery failed, not the kernel."""

    @property
    def label(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}"
        try:
            name = signal.Signals(self.signal).name
        except ValueError:
            name = f"signal {self.signal}"
        return name


class Ended(Exception):
    """The child ended before it answered."""

    def __init__(self, status: Status):
        super().__init__(status.label)
        self.status = status


class TimedOut(Exception):
    """The child did not answer within the deadline."""


class ForkServer:
    """Starts children. One a command; itself a child that ends with this process."""

    def __init__(self, preload: tuple[str, ...] = PRELOAD):
        self._lock = threading.Lock()
        self._ready = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "assay.processes",
                str(theirs.fileno()),
                *preload,
            ],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends the children
        )
        theirs.close()
        self._sock = ours

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Waits until torch is imported. Raises AssayError if it can't be."""
        with self._lock:
            if self._ready:
                return
            self._sock.settimeout(seconds)
            try:
                self._ready = self._sock.recv(1) == b"+"
            except (TimeoutError, ConnectionResetError):
                self._ready = False
        if not self._ready:
            raise AssayError(
                "starting the process that forks children: it ended or hung while importing torch "
                "(see above); `assay doctor` says what is missing"
            )

    def start(
        self,
        job: str,
        args: dict[str, Any],
        *,
        env: dict[str, str] | None = None,
        log: Path | None = None,
        folder: Path | None = None,
    ) -> Child:
        """Starts `job` ("module:function") in a child; the function gets a Channel and `args`."""
        self.wait_ready()
        data, worker_data = socket.socketpair()
        control, keeper_control = socket.socketpair()
        log_fd = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        request = {
            "job": job,
            "env": env or {},
            "path": [p for p in sys.path if p],
            "folder": str(folder or Path.cwd()),
        }
        try:
            with self._lock:
                socket.send_fds(
                    self._sock,
                    [json.dumps(request).encode()],
                    [worker_data.fileno(), keeper_control.fileno(), log_fd],
                )
        except (BrokenPipeError, ConnectionResetError):
            raise AssayError("the process that forks children is gone; run again") from None
        finally:
            worker_data.close()
            keeper_control.close()
            os.close(log_fd)
        child = Child(Channel(data), control)
        with contextlib.suppress(Closed):  # a child that died at once is reported by receive()
            child.channel.send(**args)
        return child

    def close(self) -> None:
        """Ends the server. Children have their own keepers, so end those first."""
        self._sock.close()
        if not self._ready:  # it would finish importing torch first, for nobody
            self.process.kill()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _import_path() -> list[str]:
    here = str(Path(__file__).resolve().parents[2])
    given = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return [here, *(p for p in given if p != here)]


class Child:
    """One running child. `receive` returns, or raises Ended or TimedOut; then call `end`.

    One thread talks to it; any thread may end it, and who waits for a message then gets Ended.
    """

    def __init__(self, channel: Channel, control: socket.socket):
        self.channel = channel
        self._control = control
        self._status: Status | None = None
        self._settling = threading.Lock()
        """Held by whoever reads the keeper's report."""
        self._talking = threading.Lock()
        """Held by whoever uses the channel: nobody may close it under them."""

    def send(self, **message: Any) -> None:
        """Sends a message. Raises Ended if the child is gone."""
        with self._talking:
            try:
                if self._status is None:
                    self.channel.send(**message)
                    return
            except Closed:
                pass
        raise Ended(self.end())

    def receive(self, seconds: float) -> dict[str, Any]:
        """The child's next message. Raises TimedOut after `seconds`, Ended if it is gone."""
        end = time.monotonic() + seconds
        with self._talking:
            try:
                while self._status is None:
                    message = self.channel.receive(0)
                    if message is not None:
                        return message
                    left = end - time.monotonic()
                    if left <= 0:
                        raise TimedOut
                    both = [self.channel.sock, self._control]
                    ready, _, _ = select.select(both, [], [], left)
                    if ready == [self._control]:
                        break
            except Closed:
                pass
            status = self._settle(1.0)
        if status is None:  # it closed its channel, or sent garbage, and goes on
            status = self.end()
        self._close()
        raise Ended(status)

    def end(self) -> Status:
        """Ends the child and everything below it; waits a bounded time."""
        if self._status is None:
            with contextlib.suppress(OSError):  # ended already: its report is there to be read
                self._control.sendall(b"k")
        status = self._settle(END_SECONDS + 2) or Status(None, None)
        self._status = status
        self._close()
        return status

    def _settle(self, seconds: float) -> Status | None:
        """The keeper's report; None if there is none within `seconds`."""
        with self._settling:
            if self._status is None:
                self._control.settimeout(seconds)
                try:
                    self._status = _parse(self._control.recv(1 << 16))
                except TimeoutError:
                    return None
                except ConnectionResetError:
                    self._status = _parse(b"")
            return self._status

    def _close(self) -> None:
        """Closes both sockets, unless somebody waits on them, who then does it."""
        if self._talking.acquire(blocking=False):
            self._control.close()
            self.channel.close()
            self._talking.release()


def _parse(report: bytes) -> Status:
    if not report:  # the keeper itself was killed, and the worker with it
        return Status(None, signal.SIGKILL)
    said = json.loads(report)
    status = said["status"]
    if status is None:
        return Status(None, signal.SIGKILL, tuple(said["left"]))
    if os.WIFSIGNALED(status):
        return Status(None, os.WTERMSIG(status), tuple(said["left"]))
    code = os.WEXITSTATUS(status)
    return Status(code, None, tuple(said["left"]), harness=code == HARNESS_FAILED)
