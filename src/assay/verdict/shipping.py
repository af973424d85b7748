"""The bytes of a tensor as a file in shared memory, by several threads where there are many.

A copy from a GPU straight into the file's pages runs at some 1 GB/s (one H200's host): most of it
is the fresh pages, one at a time. Through page-locked memory and `pwrite`, threads share them.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import torch

STAGED = 8 << 20
"""Bytes that a thread brings at a time."""
WRITERS = 4


def write(raw: torch.Tensor, path: Path) -> None:
    """Writes a tensor of bytes, contiguous, to a new file."""
    if raw.device.type == "cpu" or not raw.numel():
        raw.cpu().numpy().tofile(path)
        return
    with path.open("wb") as file:
        file.truncate(raw.numel())
        if raw.numel() > STAGED:
            torch.cuda.synchronize(raw.device)  # threads have streams of their own
            staged(raw, file.fileno())
            return
    torch.from_file(str(path), shared=True, size=raw.numel(), dtype=torch.uint8).copy_(raw)


def staged(raw: torch.Tensor, file: int) -> None:
    """Writes it to an open file, a part at a time. Raises what a thread raised."""
    parts = iter(raw.split(STAGED))
    turn, failures = threading.Lock(), list[BaseException]()
    place = 0

    def next_part() -> tuple[int, torch.Tensor] | None:
        nonlocal place
        with turn:
            part = next(parts, None)
            if part is None or failures:
                return None
            start, place = place, place + part.numel()
            return start, part

    def work() -> None:
        try:
            room = torch.empty(STAGED, dtype=torch.uint8, pin_memory=raw.is_cuda)
            while (found := next_part()) is not None:
                start, part = found
                held = room[: part.numel()]
                held.copy_(part)
                _write_all(file, memoryview(held.numpy()), start)
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _write_all(file: int, data: memoryview, start: int) -> None:
    done = 0
    while done < len(data):  # a file in memory may take less at a time
        done += os.pwrite(file, data[done:], start + done)
