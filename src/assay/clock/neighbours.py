"""Who else uses the GPU: processes that NVML lists and that are none of this run's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def others(listed: Iterable[int], own: int, owner: int) -> tuple[int, ...] | None:
    """Those of `listed` that do not descend from `owner`; None where that can't be told.

    NVML counts processes as the host does: in a container of its own numbers this process is not
    among them, and neither are others known by theirs.
    """
    return strangers(tuple(listed), own, owner, _parent)


def strangers(
    listed: tuple[int, ...], own: int, owner: int, parent: Callable[[int], int | None]
) -> tuple[int, ...] | None:
    """The same, with what tells the parent of a process; 0 or None: it has none."""
    if own not in listed:
        return None
    return tuple(sorted(pid for pid in listed if not _descends(pid, owner, parent)))


def _descends(pid: int, owner: int, parent: Callable[[int], int | None]) -> bool:
    seen: set[int] = set()
    now: int | None = pid
    while now and now not in seen:
        if now == owner:
            return True
        seen.add(now)
        now = parent(now)
    return False


def _parent(pid: int) -> int | None:
    """By /proc, whose second field is a name in brackets that may hold spaces (proc(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[1])
