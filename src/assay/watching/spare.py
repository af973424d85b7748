"""A spare child: warm before there is anything to do, then given one job, the same as any other."""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import Any

import torch

from ..processes.channel import Channel


def main(channel: Channel, device: str, modules: list[str]) -> None:
    """Warms up, says {warm: true}, waits for {job, args, env, log}, and does that job.

    It has imported nothing of the user's, so its job begins as it would in a new child.
    """
    for name in modules:
        importlib.import_module(name)
    if device.startswith("cuda"):
        _warm(device)
    channel.send(warm=True)
    given: dict[str, Any] = channel.receive() or {}
    os.environ.update(given["env"])
    log = os.open(given["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for fd in (1, 2):
        os.dup2(log, fd)
    os.close(log)
    module, name = given["job"].split(":")
    getattr(importlib.import_module(module), name)(channel, **given["args"])


def _warm(device: str) -> None:
    """A CUDA context, and the kernels of torch that poison, copy and compare, loaded."""
    torch.cuda.set_device(device)
    for dtype in (torch.uint8, torch.float32, torch.bfloat16):
        with contextlib.suppress(NotImplementedError):  # not every card has every type
            value = torch.zeros(1024, dtype=dtype).to(device)
            value.fill_(1)
            value.clone().copy_(value)
            bool((value.view(torch.uint8) == 1).all())
            value.cpu()
    torch.cuda.synchronize(device)
