"""Both zoos of kernels judged by Assay and by what others use.

    python -m benchmarks.verdict.side_by_side [FILE.py ...] [--no-docs]

From the root of a checkout, on a CPU. gpucheck is asked where it is installed
(`pip install gpucheck --no-deps`). Each kernel is called in a process of its own: the reference in
the case's dtype, then the kernel on the same inputs, with plain torch.empty outputs if it fills
them. A crash, a hang or an exception counts as noticed. Rows go to
benchmarks/results/<cpu>/side_by_side.jsonl, the table into docs/verdicts.md. Exits 1 if Assay
passes a wrong kernel or rejects a right one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assay.selftest.zoo import Sample, samples
from assay.session import Session

from . import table
from .kernels import compared
from .peers import PEERS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = re.compile(r"(?:/[\w.+-]+)+/(?=[\w.+-]+\.(?:py|cpp|cu)\b)")
"""Where files lie on one machine, which is nobody else's business."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="only these files of the zoos")
    parser.add_argument("--no-docs", action="store_true", help="print, and write nothing")
    given = parser.parse_args(arguments)
    chosen = [Sample(path.resolve()) for path in given.files]
    chosen = chosen or [*samples("wrong"), *samples("right")]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        rows = compared(session, chosen, lambda text: print(text, file=sys.stderr, flush=True))
        cpu = session.machine().cpu
    head = head_of(cpu, time.monotonic() - begin)
    section = table.text(head, rows)
    print(section)
    if not given.no_docs:
        write(head, rows, section)
    passed, rejected, _, _ = table.score(rows, table.ASSAY)
    return 1 if passed or rejected else 0


def head_of(cpu: str, seconds: float) -> dict[str, Any]:
    """What was compared, in which versions."""
    from assay import __version__

    peers = {table.ASSAY: __version__}
    for peer in PEERS:
        rule = f"({peer.package} {peer.version})" if not peer.missing else peer.missing
        peers[peer.name] = rule if peer.name != "KernelBench" else f"rule, 1e-2, 5 seeds {rule}"
    return {"cpu": cpu, "seconds": round(seconds, 1), "peers": peers}


def write(head: dict[str, Any], rows: list[dict[str, Any]], section: str) -> None:
    vendor = " ".join(head["cpu"].split()[:2]) or "cpu"
    name = re.sub(r"[^a-z0-9]+", "-", vendor.lower()).strip("-")
    folder = ROOT / "benchmarks" / "results" / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(line) + "\n" for line in [head, *rows])
    lines = FOLDERS.sub("", lines)
    (folder / "side_by_side.jsonl").write_text(lines)
    table.put(ROOT / "docs" / "verdicts.md", section)


if __name__ == "__main__":
    sys.exit(main())
