"""The clock's error table of this machine's GPU, kept as a row.

    python -m benchmarks.ruler [--processes 6] [--comparisons 300]

What `assay selftest clock` prints; a line a run is added to benchmarks/results/<card>/ruler.jsonl.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import msgspec

from assay.commands.ruler import text
from assay.selftest.store import keep
from assay.selftest.trying import tried
from assay.session import Session
from benchmarks.first_operators import RESULTS, card


def main() -> None:
    """Tries the clock; exits 1 if an equal pair was told apart or a longer one missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--comparisons", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        place = RESULTS / card(session.machine()) / "ruler.jsonl"
        made = tried(session, given.device, given.processes, given.comparisons, print)
    keep(made)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("ab") as file:
        file.write(msgspec.json.encode(made) + b"\n")
    print("\n".join(text(made)))
    raise SystemExit(any(one.false or one.missed for one in made.alarms))


if __name__ == "__main__":
    main()
