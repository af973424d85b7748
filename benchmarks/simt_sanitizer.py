"""Planted faults by assay.simt on a CPU and by compute-sanitizer on a card: who sees what, where.

    python benchmarks/simt_sanitizer.py [FOLDER]

On a machine with a GPU, compute-sanitizer, ptxas, PyTorch and g++. Each kernel of
simt_card/faults.cu runs with its fault and without, under each tool of compute-sanitizer and here.
Rows go to FOLDER/simt_sanitizer.jsonl. Exits 1 where who sees a fault is not what
simt_card/planted.py says, with its reason, or where a kernel without a fault is blamed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from simt_card import build, launch, nsight, planted
from simt_counts import folder_of

import assay.simt as simt

WORKERS = 8
SECONDS = 120
FOUND = re.compile(
    r"^=+ (Invalid .*|Uninitialized __\w+__ .*|Barrier error .*|Illegal instruction|"
    r"(?:Error|Warning): .*hazard.*?)(?: at __\w+__ \S+ in block .*)?$"
)
LINE = re.compile(rf"in {planted.SOURCE.name}:(\d+)")
THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")


@dataclass(frozen=True)
class Job:
    case: planted.Planted
    right: bool
    ptx: str
    entry: str

    def here(self) -> list[dict[str, Any]]:
        """What assay.simt says."""
        memory = simt.Memory()
        args = [a.copy() if isinstance(a, np.ndarray) else a for a in self.case.args]
        for position in self.case.garbage:
            memory.add(args[position].ctypes.data, args[position].nbytes, written=False)
        run = simt.load(self.ptx, entry=self.entry).launch(
            (self.case.grid,), (self.case.block,), args, shared=self.case.shared, memory=memory
        )
        return [
            {"word": f.word, "line": f.line, "block": f.block, "thread": f.thread, "count": f.count}
            for f in run.faults
        ]

    def save(self, arch: str) -> Path:
        kernel = simt.load(self.ptx, entry=self.entry)
        path = build.FOLDER / f"{self.case.name}_{self.right}.job"
        made = {
            "cubin": str(build.cubin(self.ptx, arch)),
            "entry": self.entry,
            "grid": (self.case.grid, 1, 1),
            "block": (self.case.block, 1, 1),
            "shared": self.case.shared,
            "args": build.packed(self.case.args, kernel.parameters),
            "garbage": self.case.garbage,
            "read": False,
        }
        launch.save(path, [made])
        return path


def under(tool: str, path: Path) -> dict[str, Any] | None:
    """What a tool of compute-sanitizer says of a launch; None: nothing."""
    command = [build.tool("compute-sanitizer"), "--tool", tool, "--show-backtrace", "no"]
    command += ["--racecheck-report", "all"] if tool == "racecheck" else []
    command += ["--print-limit", "100", sys.executable, str(launch.__file__), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if "SUMMARY" not in done.stdout:
        raise SystemExit(f"{tool}, {path.name}: {done.stdout[-500:]}{done.stderr[-500:]}")
    said = [m.group(1).strip() for line in done.stdout.splitlines() if (m := FOUND.match(line))]
    if not said:
        return None
    place = THREAD.search(done.stdout)
    numbers = [int(n) for n in place.groups()] if place else []
    return {
        "tool": tool,
        "says": said[0],
        "lines": sorted({int(n) for n in LINE.findall(done.stdout)}),
        "thread": numbers[:3],
        "block": numbers[3:],
    }


def row_of(job: Job, said: list[dict[str, Any]]) -> dict[str, Any]:
    ours = job.here()
    who = {(1, 1): "both", (1, 0): "assay", (0, 1): "sanitizer", (0, 0): "neither"}
    seen = who[bool(ours), bool(said)]
    row: dict[str, Any] = {"name": job.case.name, "fault": not job.right, "seen_by": seen}
    row["as_expected"] = seen == ("neither" if job.right else job.case.seen)
    if seen in ("assay", "sanitizer"):
        row["reason"] = job.case.reason
    if seen == "both":
        lines = {n for one in said for n in one["lines"]}
        row["same_line"] = bool(lines & {fault["line"] for fault in ours})
        told = [(one["thread"], one["block"]) for one in said if one["thread"]]
        if told:
            own = [(list(fault["thread"]), list(fault["block"])) for fault in ours]
            row["same_thread"] = any(one in own for one in told)
        row["as_expected"] = row["as_expected"] and row["same_line"]
    return row | {"assay": ours, "sanitizer": said}


def say(row: dict[str, Any]) -> None:
    ours = "; ".join(f"{f['word']}, line {f['line']}" for f in row["assay"]) or "nothing"
    theirs = "; ".join(
        f"{s['tool']}: {s['says']}, line {'/'.join(map(str, s['lines']))}" for s in row["sanitizer"]
    )
    print(f"{row['name']:24}{row['seen_by']:10}{ours:60} {theirs or 'nothing'}")
    if not row["as_expected"]:
        print(f"{'':24}NOT AS EXPECTED")


def main() -> int:
    name, driver, arch = nsight.card()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else folder_of(name)
    both = [(case, right) for case in planted.every() for right in (False, True)]
    texts = build.cuda(planted.SOURCE, tuple(case.kernel(right) for case, right in both))
    jobs = [Job(case, right, *texts[case.kernel(right)]) for case, right in both]
    work = [(tool, path) for job in jobs for path in [job.save(arch)] for tool in planted.TOOLS]
    with ThreadPoolExecutor(WORKERS) as pool:
        said = list(pool.map(lambda pair: under(*pair), work))
    each = len(planted.TOOLS)
    rows = [
        row_of(job, [one for one in said[i * each : (i + 1) * each] if one])
        for i, job in enumerate(jobs)
    ]
    for row in rows:
        if row["fault"] or not row["as_expected"]:
            say(row)
    odd = [row["name"] for row in rows if not row["as_expected"]]
    found = [row for row in rows if row["fault"]]
    head: dict[str, Any] = {"card": name, "driver": driver, "arch": arch, "faults": len(found)}
    head |= {k: sum(r["seen_by"] == k for r in found) for k in ("both", "assay", "sanitizer")}
    head["blamed_without_fault"] = sum(r["seen_by"] != "neither" for r in rows if not r["fault"])
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in [head, *rows])
    (folder / "simt_sanitizer.jsonl").write_text(text)
    print(json.dumps(head))
    return 1 if odd else 0


if __name__ == "__main__":
    sys.exit(main())
