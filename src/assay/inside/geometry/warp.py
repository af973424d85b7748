"""One access of one warp: which sectors of global memory its lanes touch, which banks of shared.

A sector is 32 bytes. Shared memory has 32 banks of 4 bytes; a pass serves one word of each bank, to
any number of lanes. Lanes of up to 4 bytes are served together, wider ones in groups whose bytes
are 128; where neighbouring lanes load the same address, two groups at a time (as an H100 counts:
benchmarks/simt_counts.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import AssayError

SECTOR = 32
BANKS = 32
WORD = 4
LANES = 32
WIDTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class WarpAccess:
    """What one access costs. Addresses are bytes; None: the lane takes no part."""

    width: int
    """Bytes a lane."""
    addresses: tuple[int | None, ...]
    store: bool = False

    def __post_init__(self) -> None:
        if self.width not in WIDTHS:
            raise AssayError(f"an access of {self.width} bytes a lane; it can be {WIDTHS}")
        if len(self.addresses) > LANES:
            raise AssayError(f"{len(self.addresses)} lanes: a warp has {LANES}")
        for lane, at in enumerate(self.addresses):
            if at is not None and (at < 0 or at % self.width):
                raise AssayError(f"lane {lane}: address {at} is no multiple of {self.width}")

    @property
    def active(self) -> tuple[int, ...]:
        """Addresses of the lanes that take part."""
        return tuple(at for at in self.addresses if at is not None)

    @property
    def sectors(self) -> tuple[int, ...]:
        """Different sectors of global memory, by number."""
        return tuple(sorted({at // SECTOR for at in self.active}))

    @property
    def ideal_sectors(self) -> int:
        """If the lanes' bytes lay side by side."""
        return -(-len(self.active) * self.width // SECTOR)

    @property
    def passes(self) -> int:
        """Of shared memory: for each group of lanes, the most words that one bank has to give."""
        size = self._group()
        groups = [self.addresses[at : at + size] for at in range(0, len(self.addresses), size)]
        return sum(max(self._words(group).values(), default=0) for group in groups)

    @property
    def ideal_passes(self) -> int:
        """If their bytes lay side by side: 128 in a pass."""
        return -(-len(self.active) * self.width // (BANKS * WORD))

    def banks(self) -> dict[int, int]:
        """Different words that each bank has to give, all lanes together."""
        return self._words(self.addresses)

    def _words(self, addresses: Sequence[int | None]) -> dict[int, int]:
        words = {
            (at + byte) // WORD for at in addresses if at is not None for byte in range(self.width)
        }
        count: dict[int, int] = {}
        for word in words:
            count[word % BANKS] = count.get(word % BANKS, 0) + 1
        return dict(sorted(count.items()))

    def _group(self) -> int:
        """Lanes that are served together."""
        if self.width <= WORD:
            return LANES
        size = BANKS * WORD // self.width
        lanes = self.addresses
        for step in (1, 2):
            pairs = [
                (lanes[i], lanes[i ^ step]) for i in range(len(lanes)) if i ^ step < len(lanes)
            ]
            alike = all(a == b for a, b in pairs if a is not None and b is not None)
            if alike and not self.store:
                return min(LANES, 2 * size)
        return size


def strided(width: int, stride: int, start: int = 0, store: bool = False) -> WarpAccess:
    """A full warp whose lanes are `stride` elements of `width` bytes apart, from byte `start`."""
    return WarpAccess(width, tuple(start + i * stride * width for i in range(LANES)), store)


def lines(access: WarpAccess) -> Iterator[str]:
    """The map as text: a row for each sector with its lanes, then the banks."""
    yield (
        f"{len(access.active)} lanes of {access.width} bytes: {len(access.sectors)} sectors "
        f"(ideal {access.ideal_sectors}); {access.passes} passes of shared memory "
        f"(ideal {access.ideal_passes})"
    )
    for sector in access.sectors:
        inside = [
            lane
            for lane, at in enumerate(access.addresses)
            if at is not None and at // SECTOR == sector
        ]
        yield f"  sector {sector:>6}  lanes {_ranges(inside)}"
    words = access.banks()
    most = max(words.values(), default=0)
    worst = [bank for bank, number in words.items() if number == most]
    if most > 1:
        yield f"  banks {_ranges(worst)}: {most} words each"


def _ranges(numbers: Sequence[int]) -> str:
    """`0-7, 9`."""
    made: list[list[int]] = []
    for number in numbers:
        if made and number == made[-1][1] + 1:
            made[-1][1] = number
        else:
            made.append([number, number])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in made)
