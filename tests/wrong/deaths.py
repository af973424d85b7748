"""Kernels that raise, exit, abort, hang or fork: `crashed`, `timed out`, `out of memory`.

Each costs its own row and nothing else; a process that it left behind is ended (L7, L8).
"""

import os
import signal
import subprocess
import sys
import time

import torch

import assay

OPTIONS = {"deadline": 4.0}
EXPECT = {
    "eager/raises": ("crashed", "ValueError: no such thing at "),
    "eager/raises_without_a_word": ("crashed", "KeyError: (no message)"),
    "eager/raises_what_cannot_be_printed": ("crashed", "Unprintable"),
    "eager/exits": ("crashed", "SystemExit: 3 at "),
    "eager/leaves_with_0": ("crashed", "exit code 0"),
    "eager/leaves_with_70": ("crashed", "exit code 70"),
    "eager/aborts": ("crashed", "SIGABRT"),
    "eager/segfaults": ("crashed", "SIGSEGV"),
    "eager/killed": ("crashed", "SIGKILL"),
    "eager/closes_every_file": ("crashed", "it ended its process"),
    "eager/hangs": ("timed out", "no answer after 4 s (run)"),
    "eager/hangs_and_ignores_signals": ("timed out", "no answer after 4 s (run)"),
    "eager/memory_error": ("out of memory", "too much"),
    "eager/cuda_out_of_memory": ("out of memory", "CUDA out of memory. Tried to allocate"),
    "eager/asks_for_a_petabyte": ("out of memory", "can't allocate memory"),
    "eager/invalid_argument_of_python": ("crashed", "OSError: [Errno 22] Invalid argument"),
    "eager/interrupted": ("crashed", "KeyboardInterrupt"),
    "eager/illegal_address": ("crashed", "illegal memory access"),
    "eager/too_many_threads": ("did not launch", "invalid argument"),
}
IDS = "L2 L7 L8 L10"


def reference(x):
    return x + 1


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("deaths", reference, inputs, cases=assay.grid(n=[16]))


@op.variant("eager/raises")
def raises(x):
    raise ValueError("no such thing")


@op.variant("eager/raises_without_a_word")
def raises_without_a_word(x):
    raise KeyError


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@op.variant("eager/raises_what_cannot_be_printed")
def raises_what_cannot_be_printed(x):
    raise Unprintable


@op.variant("eager/exits")
def exits(x):
    sys.exit(3)


@op.variant("eager/leaves_with_0")
def leaves_with_0(x):
    os._exit(0)


@op.variant("eager/leaves_with_70")
def leaves_with_70(x):
    os._exit(70)


@op.variant("eager/aborts")
def aborts(x):
    os.abort()


@op.variant("eager/segfaults")
def segfaults(x):
    os.kill(os.getpid(), signal.SIGSEGV)


@op.variant("eager/killed")
def killed(x):
    os.kill(os.getpid(), signal.SIGKILL)


@op.variant("eager/closes_every_file")
def closes_every_file(x):
    os.closerange(0, 1024)
    return x + 1


@op.variant("eager/hangs")
def hangs(x):
    time.sleep(3600)


@op.variant("eager/hangs_and_ignores_signals")
def hangs_and_ignores_signals(x):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3600)


@op.variant("eager/memory_error")
def memory_error(x):
    raise MemoryError("too much")


@op.variant("eager/cuda_out_of_memory")
def cuda_out_of_memory(x):
    raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")


@op.variant("eager/asks_for_a_petabyte")
def asks_for_a_petabyte(x):
    return torch.empty(1 << 50)


@op.variant("eager/invalid_argument_of_python")
def invalid_argument_of_python(x):
    raise OSError(22, "Invalid argument")


@op.variant("eager/interrupted")
def interrupted(x):
    raise KeyboardInterrupt


@op.variant("eager/illegal_address")
def illegal_address(x):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


@op.variant("eager/too_many_threads")
def too_many_threads(x):
    raise RuntimeError("Triton Error [CUDA]: invalid argument")


@op.variant("eager/leaves_a_grandchild")
def leaves_a_grandchild(x):
    """Right; the process that it starts in a session of its own must be gone afterwards."""
    subprocess.Popen(["sleep", "3601.25"], start_new_session=True)
    return x + 1


@op.variant("eager/leaves_a_thread")
def leaves_a_thread(x):
    """Right; a thread that never ends must not keep its process."""
    import threading

    threading.Thread(target=time.sleep, args=(3600,)).start()
    return x + 1


@op.variant("eager/prints")
def prints(x):
    """Right; what a kernel prints is no answer of its process."""
    print('{"word": "wrong value"}')
    os.write(1, b'{"ran": []}\n')
    return x + 1
