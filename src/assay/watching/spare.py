"""A spare child: warm before there is anything to do, then given one job, the same as any other."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ..processes.channel import Channel


def main(channel: Channel, kind: str, device: str, modules: list[str]) -> None:
    """Warms up, says {warm: true}, waits for {job, args, env, log}, and does that job.

    kind: what its job will be: `look`, `judge` or `clock`. It has imported nothing of the user's,
    so its job begins as it would in a new child.
    """
    for name in modules:
        importlib.import_module(name)
    if device.startswith("cuda") and kind != "look":
        from . import rehearsal

        rehearsal.on_gpu(device, kind, modules)
    channel.send(warm=True)
    given: dict[str, Any] = channel.receive() or {}
    os.environ.update(given["env"])
    log = os.open(given["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for fd in (1, 2):
        os.dup2(log, fd)
    os.close(log)
    module, name = given["job"].split(":")
    getattr(importlib.import_module(module), name)(channel, **given["args"])
