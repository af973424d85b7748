"""Counts of assay.simt beside a card's: requests, sectors and wavefronts of the same PTX.

    python benchmarks/simt_counts.py [FOLDER]

On a machine with an H100, Nsight Compute, CUDA's ptxas and nvdisasm, PyTorch, Triton and g++. Each
kernel is compiled to PTX for sm_80; ptxas makes of it what the card runs, in a child process under
ncu, and assay.simt runs it here. Probes, single accesses of one warp at chosen addresses, say what
the card counts for one; ordinary kernels say whether the sums agree. Rows go to
FOLDER/simt_counts.jsonl: of each measure ours and the card's, and the reason where they differ. A
reason holds only while the machine code shows it. Exits 1 where a difference has none.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from simt_card import build, cases, compare, nsight, probes

import assay.simt as simt

RESULTS = Path(__file__).parent / "results"


def folder_of(card: str) -> Path:
    return RESULTS / re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-")


def probe_cases(given: list[probes.Probe]) -> list[cases.Case]:
    texts = build.cuda(cases.OWN, tuple(dict.fromkeys(p.kernel for p in given)))
    return [
        cases.Case(p.name, *texts[p.kernel], (1, 1, 1), (32, 1, 1), arguments(p), shared(p))
        for p in given
    ]


def arguments(probe: probes.Probe) -> list[Any]:
    place, what = probe.kernel.split("<")[0].split("_")
    out = np.zeros(32 * max(probe.width, 4), np.uint8)
    args: list[Any] = [probe.at] if what in ("store", "reduction") else [out, probe.at]
    return [*args, np.zeros(probes.GLOBAL * 2, np.uint8)] if place == "global" else args


def shared(probe: probes.Probe) -> int:
    return probes.SHARED if probe.kernel.startswith("shared") else 0


def measures_of(probe: cases.Case) -> list[str]:
    """What a probe is for: the measures of its one access."""
    place, what = probe.name.split("<")[0].split("_")
    kind = f"{place} {'atomic' if what == 'reduction' else what}"
    return [measure for measure in compare.MEASURES if measure.startswith(kind)]


def run_here(case: cases.Case) -> tuple[simt.Counts, list[np.ndarray], list[str]]:
    """Our counts, the arrays as they are afterwards, and the words of faults."""
    kernel = simt.load(case.ptx, entry=case.entry)
    args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in case.args]
    args += [None] * (len(kernel.parameters) - len(args))
    run = kernel.launch(case.grid, case.block, args, shared=case.shared)
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    return run.counts, arrays, sorted({fault.word for fault in run.faults})


def launch_of(case: cases.Case, arch: str) -> dict[str, Any]:
    kernel = simt.load(case.ptx, entry=case.entry)
    return {
        "cubin": str(build.cubin(case.ptx, arch)),
        "entry": case.entry,
        "grid": case.grid,
        "block": case.block,
        "shared": case.shared,
        "args": build.packed(case.args, kernel.parameters),
    }


def rows_of(
    kind: str, given: list[cases.Case], measures: list[str], arch: str
) -> list[dict[str, Any]]:
    told = compare.TOLD if kind == "kernel" else ()
    name = re.sub(r"\W+", "_", f"{kind} {' '.join(measures[:1])}")
    counters = [*compare.counters(measures), *told]
    card, after = nsight.profile(name, [launch_of(case, arch) for case in given], counters)
    made = []
    for case, counted, theirs in zip(given, card, after, strict=True):
        counts, mine, faults = run_here(case)
        ours = {access: counts.access(access) for access in counts.kinds}
        sass = build.memory_instructions(build.cubin(case.ptx, arch), case.entry)
        row = {"name": case.name, "kind": kind}
        row |= compare.compared(case.name, ours, counted, sass, case.ptx)
        if kind == "kernel":
            row["results_equal"] = all(map(alike, mine, theirs))
            row["faults"] = faults
            row["ptx_instructions"] = counts.warp_instructions
            row["told"] = {counter: int(counted[counter]) for counter in told}
            row["sass"] = sass
        made.append(row)
    return made


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """As numbers in any order: what atomics hand out depends on the order of threads."""
    if one.dtype.kind != "f":
        return bool(np.array_equal(np.sort(one, axis=None), np.sort(other, axis=None)))
    return bool(np.allclose(one, other, 1e-3, 1e-3, equal_nan=True))


def say(row: dict[str, Any]) -> None:
    told = [
        f"{measure} {mine}" + ("" if mine == theirs else f" (card {theirs})")
        for measure, (mine, theirs) in row["measures"].items()
    ]
    print(f"{row['name']:22} {'; '.join(told)}")
    for reason in dict.fromkeys(row["differs"].values()):
        print(f"{'':22} because {reason or 'UNEXPLAINED'}")


def main() -> int:
    name, driver, arch = nsight.card()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else folder_of(name)
    kernels, single = cases.every(), probe_cases(probes.every())
    with ThreadPoolExecutor() as pool:
        unique = {(case.ptx, case.entry): case for case in [*kernels, *single]}
        list(pool.map(lambda key: simt.load(key[0], entry=key[1]), unique))
    rows = rows_of("kernel", kernels, list(compare.MEASURES), arch)
    by_measures: dict[tuple[str, ...], list[cases.Case]] = {}
    for case in single:
        by_measures.setdefault(tuple(measures_of(case)), []).append(case)
    for measures, given in by_measures.items():
        rows += rows_of("probe", given, list(measures), arch)
    unexplained = [r for r in rows if "" in r["differs"].values()]
    wrong = [r["name"] for r in rows if not r.get("results_equal", True) or r.get("faults")]
    for row in rows:
        if row["kind"] == "kernel" or row in unexplained:
            say(row)
    agree = Counter(row["kind"] for row in rows if not row["differs"])
    total = Counter(row["kind"] for row in rows)
    head = {"card": name, "driver": driver, "arch": arch, "ncu": nsight.version()}
    summary = {
        kind: {"rows": total[kind], "equal": agree[kind]} for kind in ("kernel", "probe")
    } | {"unexplained": len(unexplained)}
    folder.mkdir(parents=True, exist_ok=True)
    lines = [head | summary, *rows]
    (folder / "simt_counts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(json.dumps(head | summary))
    if wrong:
        print(f"results differ or faults: {', '.join(wrong)}")
    return 1 if unexplained or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
