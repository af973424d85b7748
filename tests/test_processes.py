"""Children: every way to end, and nothing that outlives them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError
from assay.processes import Child, Ended, ForkServer, TimedOut
from assay.processes.channel import Channel
from assay.processes.server import HARNESS_FAILED
from assay.session import Session, Stopped

FIXTURES = Path(__file__).parent / "fixtures"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FIXTURES))  # a request carries sys.path to the child


@pytest.fixture
def started(session: Session) -> Iterator[Any]:
    """`started(job, **args)` starts a job of fixtures/jobs.py."""
    children: list[Child] = []

    def start(job: str, **args: Any) -> Child:
        children.append(session.server.start(f"jobs:{job}", args, log=session.log(job)))
        return children[-1]

    yield start
    for child in children:
        child.end()


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether a process ends within some time; a zombie has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


# What a child gets


def test_a_child_gets_its_arguments_with_torch_imported(started: Any) -> None:
    child = started("answer", text="a", number=1.5, items=[1, None], blob=b"\0")
    said = child.receive(30)
    assert said["got"] == {"text": "a", "number": 1.5, "items": [1, None], "blob": b"\0"}
    assert said["torch"] is True
    assert said["child"] == "1"
    with pytest.raises(Ended) as ended:  # not `end`, which may come before it left by itself
        child.receive(30)
    assert ended.value.status.label == "exit code 0"


def test_messages_of_many_sizes_come_whole_and_in_order(started: Any) -> None:
    child = started("echo")
    for number, size in enumerate((0, 1, 70_000, 3_000_000)):
        child.send(number=number, blob=b"x" * size)
        said = child.receive(30)
        assert said["number"] == number
        assert len(said["blob"]) == size


def test_threads_that_send_at_once_send_whole_messages() -> None:
    """A kernel may be launched from any thread, and each launch tells of itself."""
    ours, theirs = (Channel(sock) for sock in socket.socketpair())
    sizes = [3_000_000 + number for number in range(8)]
    with ThreadPoolExecutor(len(sizes)) as pool, closing(ours), closing(theirs):
        sent = [pool.submit(ours.send, blob=b"x" * size) for size in sizes]
        came = [theirs.receive(30) for _ in sizes]
        assert [one.result() for one in sent] == [None] * len(sizes)
    assert sorted(len(message["blob"]) for message in came if message) == sizes


@linux
def test_the_server_maps_no_driver_and_has_torch(session: Session) -> None:
    session.server.wait_ready()
    maps = Path(f"/proc/{session.server.process.pid}/maps").read_text()
    assert "libtorch" in maps, "else this proves nothing"
    assert "libcuda.so" not in maps
    assert "/dev/nvidia" not in maps


@linux
def test_twenty_children_two_at_a_time_take_two_seconds(session: Session, started: Any) -> None:
    session.server.wait_ready()

    def one(number: int) -> int:
        child = started("answer", number=number)
        said: int = child.receive(30)["got"]["number"]
        child.end()
        return said

    best = float("inf")
    for _ in range(5):
        begun = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(one, range(20))) == list(range(20))
        best = min(best, (time.monotonic() - begun) / slowed())
        if best < 2:
            break
    assert best < 2, f"{best:.1f} s"


def slowed() -> float:
    """How many times longer than alone anything takes now: other tests have the cores too."""
    wall, own = time.monotonic(), time.process_time()
    while time.process_time() - own < 0.1:
        pass
    return (time.monotonic() - wall) / (time.process_time() - own)


@linux
def test_a_child_shares_what_the_server_imported(started: Any) -> None:
    used = started("memory").receive(30)["bytes"]
    assert used < 60e6, f"{used / 1e6:.0f} MB of its own; torch alone is some 200"


# How a child ends


@pytest.mark.parametrize(
    ("job", "args", "label", "harness"),
    [
        ("abort", {}, "SIGABRT", False),
        ("leave_at_once", {"code": 3}, "exit code 3", False),
        ("leave", {"code": 3}, f"exit code {HARNESS_FAILED}", True),
        ("fail", {}, f"exit code {HARNESS_FAILED}", True),
        ("no_such_job", {}, f"exit code {HARNESS_FAILED}", True),
    ],
)
def test_an_end_without_an_answer_says_how(
    started: Any, job: str, args: dict[str, Any], label: str, harness: bool
) -> None:
    child = started(job, **args)
    with pytest.raises(Ended) as ended:
        child.receive(30)
    assert ended.value.status.label == label
    assert ended.value.status.harness is harness
    assert ended.value.status.left == ()
    with pytest.raises(Ended, match=label):
        child.receive(1)
    with pytest.raises(Ended, match=label):
        child.send(more=True)


def test_what_it_printed_is_in_its_log(session: Session, started: Any) -> None:
    with pytest.raises(Ended):
        started("fail").receive(30)
    assert "ZeroDivisionError: in the job" in session.log_tail("fail")


def test_last_words_are_heard_before_the_end(started: Any) -> None:
    child = started("say_then_die")
    assert child.receive(30) == {"last": "words"}
    with pytest.raises(Ended, match="SIGKILL"):
        child.receive(30)


def test_a_send_to_a_dead_child_tells_how_it_died(started: Any) -> None:
    child = started("abort")
    time.sleep(0.3)  # its keeper has reported and ended: nobody reads what we send

    def send() -> None:
        for _ in range(100):  # the system takes some before it says so
            child.send(text="x" * 1000)

    with pytest.raises(Ended, match="SIGABRT"):
        send()


def test_a_hanging_child_is_ended_by_the_deadline(started: Any) -> None:
    child = started("hang")
    pid = child.receive(30)["pid"]
    begun = time.monotonic()
    with pytest.raises(TimedOut):
        child.receive(0.2)
    assert child.end().label == "SIGKILL"
    assert time.monotonic() - begun < 3
    assert gone(pid)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"\xff" * 64, id="a length beyond any message"),
        pytest.param(b"\x02\x00\x00\x00\xc1\xc1", id="no msgpack"),
        pytest.param(b"\x01\x00\x00\x00\x07", id="a number where a dict is due"),
    ],
)
def test_garbage_ends_the_child_that_sent_it(started: Any, text: bytes) -> None:
    child = started("garbage", text=text)
    begun = time.monotonic()
    with pytest.raises(Ended):
        child.receive(30)
    assert time.monotonic() - begun < 10


def test_a_child_that_hangs_up_is_ended(started: Any) -> None:
    with pytest.raises(Ended, match="SIGKILL"):
        started("close_and_hang").receive(30)


@linux
@pytest.mark.parametrize("then", ["end", "hang"])
def test_a_grandchild_in_its_own_session_ends_with_it(started: Any, then: str) -> None:
    child = started("grandchild", then=then)
    pid = child.receive(30)["pid"]
    if then == "end":
        with pytest.raises(Ended, match="exit code 0"):
            child.receive(30)
    else:
        assert Path(f"/proc/{pid}").exists(), "it must be seen to end"
        child.end()
    assert gone(pid)


@linux
def test_a_killed_parent_leaves_no_process(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, str(FIXTURES / "parent.py")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    with parent.stdout:
        server, below = map(int, parent.stdout.readline().split())
    assert Path(f"/proc/{below}").exists()
    assert Path(f"/proc/{server}").exists()
    parent.kill()
    parent.wait()
    assert gone(below)
    assert gone(server)


@linux
def test_a_killed_keeper_takes_its_worker_with_it(started: Any) -> None:
    child = started("hang")
    worker = child.receive(30)["pid"]
    stat = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(stat[1]), signal.SIGKILL)
    with pytest.raises(Ended, match="SIGKILL"):
        child.receive(30)
    assert gone(worker)


# The server itself


def test_a_server_that_cannot_import_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    server = ForkServer(preload=("no_such_module",))
    try:
        for _ in range(2):  # the second time must not pass for ready
            with pytest.raises(AssayError, match="ended or hung while importing torch"):
                server.wait_ready(30)
    finally:
        server.close()
    assert "no_such_module" in capfd.readouterr().err


def test_a_server_closed_before_it_was_ready_ends_quietly(
    capfd: pytest.CaptureFixture[str],
) -> None:
    begun = time.monotonic()
    server = ForkServer()
    server.close()
    assert time.monotonic() - begun < 2
    assert server.process.returncode is not None
    assert capfd.readouterr().err == ""


def test_a_server_that_is_gone_is_named() -> None:
    server = ForkServer(preload=())
    server.wait_ready()
    server.process.kill()
    server.process.wait()
    with pytest.raises(AssayError, match="the process that forks children is gone"):
        server.start("jobs:answer", {})
    server.close()


# Interrupting


@linux
@pytest.mark.full
def test_stop_ends_what_others_wait_for(tmp_path: Path) -> None:
    """Ctrl-C: the main thread stops the session while workers wait for their children."""
    heard: list[BaseException] = []
    pids: list[int] = []
    with Session(tmp_path / "logs") as own:

        def worker() -> None:
            try:
                with own.child("jobs:hang", {}, name="hang") as child:
                    pids.append(child.receive(60)["pid"])
                    child.receive(60)
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                heard.append(error)

        threads = [threading.Thread(target=worker) for _ in range(4)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60
        while len(pids) < 4 and time.monotonic() < end:
            time.sleep(0.01)
        scratch = own.folder()
        own.stop()
        for thread in threads:
            thread.join(20)
        assert [type(error) for error in heard] == [Ended] * 4, heard
        assert all(gone(pid) for pid in pids)
        with pytest.raises(Stopped), own.child("jobs:answer", {}, name="late"):
            pass
    assert gone(own.server.process.pid)
    assert not scratch.exists()


def test_ending_twice_from_two_threads_agrees(started: Any) -> None:
    child = started("hang")
    child.receive(30)
    with ThreadPoolExecutor(4) as pool:
        labels = {status.label for status in pool.map(lambda _: child.end(), range(4))}
    assert labels == {"SIGKILL"}
