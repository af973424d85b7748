"""Ceilings that were measured, kept in Assay's cache by what could change them.

Card, driver, torch and clocks make the key; each measurement is a file of its own, so that none is
overwritten, and the last one counts.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import tempfile
from pathlib import Path

from .. import cache
from ..errors import RowsError
from ..rows import decode, encode
from ..session import threads_for
from ..types import Machine, Roofs

METHOD = "3"
"""Raised when ceilings are measured in another way, which makes older ones none."""


def folder() -> Path:
    """Where ceilings are kept."""
    return cache.root().parent / "roofs"


def key_of(machine: Machine, device: str) -> dict[str, str]:
    """What the ceilings of a device hold for: another of any of these and they are no more."""
    versions = {name: machine.versions.get(name, "") for name in ("torch", "cuda-core")}
    key = {"device": device, "method": METHOD, **versions}
    gpu = machine.gpu(device)
    if gpu is None:
        return {
            **key,
            "card": machine.cpu,
            "cores": str(machine.cores),
            "threads": str(threads_for(1)),
            "cache": str(machine.llc_bytes),
            "system": machine.system,
        }
    return {
        **key,
        "card": gpu.name,
        "uuid": gpu.uuid,
        "driver": gpu.driver,
        "sm_hz": str(gpu.sm_hz),
        "memory_hz": str(gpu.memory_hz),
    }


def id_of(key: dict[str, str]) -> str:
    """A name for a key."""
    return hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=6).hexdigest()


def load(machine: Machine, device: str) -> Roofs | None:
    """The ceilings last measured for this very device; None if there are none.

    Raises RowsError for a file that can't be read.
    """
    key = key_of(machine, device)
    paths = sorted((folder() / id_of(key)).glob("*.json"))
    if not paths:
        return None
    try:
        found: Roofs = decode(paths[-1].read_bytes(), Roofs, where=str(paths[-1]))
    except RowsError as error:
        raise RowsError(f"{error}; delete it, or measure again: assay roofs --again") from None
    return found if found.key == key else None


def stored(machine: Machine) -> list[Roofs]:
    """The ceilings that are known of this machine: of its CPU and its GPUs."""
    devices = ["cpu", *(f"cuda:{index}" for index in range(len(machine.gpus)))]
    return [found for device in devices if (found := load(machine, device)) is not None]


def save(roofs: Roofs) -> Path:
    """Keeps them, whole or not at all; the path of the file."""
    place = folder() / id_of(roofs.key)
    place.mkdir(parents=True, exist_ok=True)
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
    path = place / f"{stamp}.json"
    with tempfile.NamedTemporaryFile("wb", dir=place, suffix=".part", delete=False) as file:
        file.write(encode(roofs) + b"\n")
    os.replace(file.name, path)
    return path
