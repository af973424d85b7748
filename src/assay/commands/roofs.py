"""`assay roofs`: what this machine can do at most, measured once and kept."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console

from ..report import roofs as page
from ..request import chosen_device
from ..roofs import store
from ..roofs.measure import measure
from ..rows import encode
from ..session import Session
from .running import Screen

DOUBTFUL = 3
"""Exit code of ceilings that can't be believed: no evidence."""


def show(device: str, *, again: bool, as_json: bool) -> int:
    """Prints the ceilings of a device, measuring them where none are kept. Raises AssayError."""
    screen = Screen(quiet=as_json)
    with (
        tempfile.TemporaryDirectory(prefix="assay-roofs-") as logs,
        screen,
        Session(Path(logs), screen.note) as session,
    ):
        machine = session.machine()
        chosen = chosen_device(device, machine)
        found = None if again else store.load(machine, chosen)
        kept = found is not None
        if found is None:
            found = measure(session, machine, chosen, screen.step)
            store.save(found)
    if as_json:
        print(encode(found).decode())
    else:
        page.show(Console(highlight=False), found, machine, kept=kept)
    return DOUBTFUL if found.doubtful else 0
