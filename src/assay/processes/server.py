"""The fork server: imports torch once, then forks a keeper and a worker for each request.

The keeper is the worker's parent and the reaper of everything below it (PR_SET_CHILD_SUBREAPER on
Linux), so that a grandchild that opened its own session still ends with its worker. It ends all of
them when the worker ends, when told to, and when the parent is gone. Run as
`python -m assay.processes FD MODULE...`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

from .channel import Channel, Closed

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
END_SECONDS = 5.0
"""How long to wait for killed processes; one stuck in a driver cannot die, and is then named."""
HARNESS_FAILED = 70
"""Exit code of a worker whose own machinery, not the kernel, raised (EX_SOFTWARE)."""


def main() -> None:
    """Serves requests until the parent closes the socket."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # children share these pages instead of copying them at their first collection
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended keepers leave no zombies
    try:
        sock.sendall(b"+")
    except BrokenPipeError:
        return  # the parent was done before this process was ready
    while True:
        head, fds, _, _ = socket.recv_fds(sock, 1 << 20, 3)
        if not head:
            return
        if len(fds) != 3:
            raise SystemExit(f"a request came with {len(fds)} descriptors instead of 3")
        if os.fork() == 0:
            sock.close()
            _keep(json.loads(head), *fds)
        for fd in fds:
            os.close(fd)


def _keep(request: dict, data: int, control: int, log: int) -> None:
    """Runs in the keeper: starts the worker, waits, ends what is left, reports. Never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(control)
        _work(request, data, log)
    os.close(data)
    os.close(log)
    status = None
    while status is None:
        ready, _, _ = select.select([wake_read, control], [], [], 1.0)
        if control in ready:
            os.read(control, 1)  # `k`, or nothing because the parent is gone: the same to us
            break
        if wake_read in ready:
            os.read(wake_read, 4096)
        status = _reap(pid)
    left, late = _end_all(pid)
    status = status if status is not None else late
    report = {"pid": pid, "status": status, "left": left}
    with contextlib.suppress(BrokenPipeError):  # the parent is gone: there is nobody to tell
        os.write(control, json.dumps(report).encode())
    os._exit(0)


def _reap(pid: int) -> int | None:
    """Collects every ended child; the worker's wait status if it was among them."""
    status = None
    while True:
        try:
            ended, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if ended == 0:
            return status
        if ended == pid:
            status = code


def _end_all(pid: int) -> tuple[list[int], int | None]:
    """Kills all descendants; those that would not die, and the worker's status if it did now."""
    end, status = time.monotonic() + END_SECONDS, None
    while True:
        below = _descendants(os.getpid())
        for victim in [*below, *([] if below or status is not None else [pid])]:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
        late = _reap(pid)
        status = late if late is not None else status
        alive = _descendants(os.getpid())
        if not alive or time.monotonic() > end:
            return alive, status
        time.sleep(0.005)


def _descendants(root: int) -> list[int]:
    """Process ids below `root`, from /proc; where there is none, only the direct group is known."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # ended while we looked
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _work(request: dict, data: int, log: int) -> None:
    """Runs in the worker. Never returns."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, target)
    os.environ.update(request["env"], ASSAY_CHILD="1")
    sys.path[:0] = [p for p in request["path"] if p not in sys.path]
    # Python tells sources apart by seconds and size: an edit within a second would be run as the
    # bytecode of what was there before.
    sys.dont_write_bytecode = True
    os.chdir(request["folder"])
    code = 0
    channel = Channel(socket.socket(fileno=data))
    try:
        first = channel.receive()
        module, name = request["job"].split(":")
        getattr(importlib.import_module(module), name)(channel, **(first or {}))
    except Closed:
        code = 0
    except BaseException:  # noqa: BLE001 - reported through the log and the exit code
        traceback.print_exc()
        code = HARNESS_FAILED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
