"""CUPTI and events on the same spins: of the card's timer, and of cycles, whose clock may move.

    for i in 1 2 3; do python -m benchmarks.spins; done

A line a spin, from one process on one GPU: CUPTI's median and standard deviation, the median of
events round the same calls, and how far the two are apart.
"""

from __future__ import annotations

import statistics

from assay.selftest.clock import CYCLES, TIMER
from assay.selftest.ruler import Ruled

LENGTHS = (20e-6, 100e-6, 300e-6, 1e-3, 1e-2)
BLOCKS = 6


def main() -> None:
    """Prints the lines."""
    ruled = Ruled("cuda:0")
    for by in (TIMER, CYCLES):
        for length in LENGTHS:
            clock = ruled.clock(length, by)
            spans = [span for _ in range(BLOCKS) for span in clock.block()]
            cupti, events = statistics.median(spans), statistics.median(clock.beside)
            print(
                f"{by} {1e6 * length:g}us cupti {1e6 * cupti:.3f} "
                f"sd {1e9 * statistics.pstdev(spans):.0f}ns events-same {1e6 * events:.3f} "
                f"ratio {events / cupti - 1:+.5%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
