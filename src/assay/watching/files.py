"""Noticing a save: files looked at often, by what the file system says of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.010
"""How often files are looked at. A `stat` takes microseconds, and no library is needed."""
SETTLE_SECONDS = 0.004
"""Two looks this far apart that agree mean that a file is whole: some editors cut it off first."""
MOST_SETTLING = 0.5

Mark = tuple[int, int, int] | None
"""Time of change in ns, size, inode; None where there is no file. Editors that save by renaming
change the inode."""


def mark(path: Path) -> Mark:
    """What tells one version of a file from the next, without reading it."""
    try:
        said = path.stat()
    except OSError:  # between the two halves of a rename, or removed
        return None
    return said.st_mtime_ns, said.st_size, said.st_ino


@dataclass(frozen=True)
class Files:
    """Files as they were at one moment."""

    marks: dict[Path, Mark]

    @staticmethod
    def now(paths: Iterable[Path]) -> Files:
        """The files as they are."""
        return Files({path: mark(path) for path in paths})

    def changed(self) -> list[Path]:
        """Those that are not as they were."""
        return [path for path, was in self.marks.items() if mark(path) != was]

    def joined(self, paths: Iterable[Path]) -> Files:
        """These and others; those that were known stay as they were seen first."""
        return Files({**Files.now(paths).marks, **self.marks})

    def only(self, paths: Iterable[Path]) -> Files:
        """These of them, as they were seen first, or now where they were not known."""
        return Files({p: self.marks[p] if p in self.marks else mark(p) for p in paths})

    def settled(
        self,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> Files:
        """The files once two looks agree and none is gone or empty that was neither before.

        After MOST_SETTLING seconds they are taken as they are.
        """
        end, last = clock() + MOST_SETTLING, Files.now(self.marks)
        while clock() < end:
            sleep(SETTLE_SECONDS)
            again = Files.now(self.marks)
            if again == last and not self._lost(again):
                return again
            last = again
        return last

    def _lost(self, now: Files) -> bool:
        return any(
            was and was[1] and not (now.marks[p] or (0, 0))[1] for p, was in self.marks.items()
        )
