"""A right kernel without one of its barriers at a time: which of them it needs, on this case."""

from __future__ import annotations

import filecmp
from collections.abc import Callable
from pathlib import Path

from ..errors import LaunchError
from ..simt import Synchronisation, Watch, barriers
from ..types import Barrier
from .protocol import Ran


def left_out(
    watch: Watch, whole: Ran, run: Callable[[Path, int, int], Ran], folder: Path
) -> list[Barrier]:
    """Each barrier, wait and fence of every kernel that was launched, left out in turn.

    whole: the run with all of them. run: the same again, with a folder, a seed and a poison. A
    barrier is needed if something is seen to go wrong without it, or if the outputs differ from
    those of `whole`.
    """
    folder.mkdir(exist_ok=True)
    found = []
    for name, ptx in list(watch.programs.items()):
        every = barriers(ptx, name)
        for one in every:
            watch.say(f"without barrier {one.number + 1} of {len(every)} of {name[:40]}")
            watch.dropped = {name: one.number}
            try:
                found.append(_judged(name, one, whole, run(folder, whole.seed, whole.poison)))
            except LaunchError as error:
                found.append(_barrier(name, one, str(error)))
            finally:
                watch.dropped = {}
    return found


def _judged(name: str, one: Synchronisation, whole: Ran, without: Ran) -> Barrier:
    if without.faults:
        return _barrier(name, one, str(without.faults[0]))
    pairs = list(zip(whole.outputs, without.outputs))
    same = all(filecmp.cmp(a.path, b.path, shallow=False) for a, b in pairs)
    return _barrier(name, one, "" if same else "the outputs differ")


def _barrier(name: str, one: Synchronisation, seen: str) -> Barrier:
    file, line = (one.place.file, one.place.line) if one.place else ("", 0)
    return Barrier(kernel=name, form=one.form, file=file, line=line, needed=bool(seen), seen=seen)
