"""The clock's error tables, kept with the machine: a file a device, the last one counts."""

from __future__ import annotations

from pathlib import Path

import msgspec

from .. import cache
from ..clock.made import Noise
from ..errors import AssayError
from .clock import Ruler


def kept_at(machine: str, device: str) -> Path:
    """Where the table of a machine's device is kept."""
    return cache.root() / "rulers" / f"{machine}-{device.replace(':', '')}.json"


def keep(made: Ruler) -> None:
    """Keeps a table, in place of an older one."""
    path = kept_at(made.machine, made.device)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(made))


def load(machine: str, device: str) -> Ruler | None:
    """The table of a device; None where the clock was never tried. Raises AssayError if broken."""
    path = kept_at(machine, device)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ruler)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise AssayError(
            f"{path} is no table of the clock ({error}); delete it, `assay selftest clock` makes "
            "another"
        ) from None


def noise_of(ruler: Ruler) -> Noise:
    """What equal kernels differed by, at the lengths that were tried."""
    return Noise(tuple(sorted((one.length, one.noise) for one in ruler.alarms)))
