"""Choices, kept in Assay's cache by what could change them: one file a device, whole or not at all.

The key holds card, driver, torch and compilers; a choice holds dtype, shape and strides, and the
hash of the variant's source. So no card uses what another one measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .. import cache
from ..errors import AssayError
from ..types import Machine
from .choosing import Choice

COMPILERS = ("torch", "triton", "cuda-core", "numba", "numba-cuda", "nvidia-cuda-nvrtc")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """All choices of one device."""

    key: dict[str, str]
    choices: tuple[Choice, ...]


def key_of(machine: Machine, device: str) -> dict[str, str]:
    """What the choices of a device hold for."""
    versions = {name: machine.versions.get(name, "") for name in COMPILERS}
    gpu = machine.gpu(device)
    if gpu is None:
        return {"card": machine.cpu, "cores": str(machine.cores), **versions}
    return {"card": gpu.name, "driver": gpu.driver, **versions}


def path_of(key: dict[str, str]) -> Path:
    """The file of a device."""
    name = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8).hexdigest()
    return cache.root().parent / "tuned" / f"{name}.json"


def load(machine: Machine, device: str) -> tuple[Choice, ...]:
    """The choices for a device; none where nothing was tuned. Raises AssayError if broken."""
    key = key_of(machine, device)
    path = path_of(key)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return ()
    except msgspec.DecodeError as error:
        raise AssayError(
            f"{path} holds no choices ({error}); delete it, `assay tune` makes another"
        ) from None
    return found.choices if found.key == key else ()


def save(machine: Machine, device: str, made: Sequence[Choice]) -> Path:
    """Keeps choices in place of older ones of the same Op and case; the path of the file."""
    key = key_of(machine, device)
    path = path_of(key)
    new = {(one.op, one.case.label) for one in made}
    old = [one for one in load(machine, device) if (one.op, one.case.label) not in new]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, suffix=".part", delete=False) as file:
        file.write(msgspec.json.encode(Kept(key=key, choices=(*old, *made))))
    os.replace(file.name, path)
    return path
