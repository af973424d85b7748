"""The JSON that pytest-benchmark saves, there and back.

One object: `machine_info`, `commit_info`, `benchmarks` (each with `stats`, `params`,
`extra_info`), `datetime`, `version`. Samples are in `stats.data`, seconds a call, if it was told to
save them (`--benchmark-save-data`, `--benchmark-json`). What Assay knows beyond that is in
`extra_info.assay`.
"""

from __future__ import annotations

import datetime
import json
import math
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import RowsError
from ..types import Row
from . import carried
from .model import UNKNOWN, Entry, Side
from .model import card as card_of

LOST = (*carried.LOST, "infinite and undefined numbers of a case")


def is_it(whole: dict[str, Any]) -> bool:
    """Whether this is such a file."""
    return "benchmarks" in whole and "machine_info" in whole


def load(whole: dict[str, Any], path: Path) -> Side:
    """The rows of such a file. Raises RowsError naming what it lacks."""
    schedule = carried.digest(path)
    info = whole.get("machine_info") or {}
    cpu = info.get("cpu") or {}
    card = cpu.get("brand_raw") or cpu.get("brand") or UNKNOWN
    if card != UNKNOWN and cpu.get("count"):
        card = f"{card}, {cpu['count']} cores"
    machines = {m.id: m for m in carried.machines_of(whole.get("assay"), path)}
    entries: list[Entry] = []
    try:
        for number, one in enumerate(whole["benchmarks"]):
            mine = (one.get("extra_info") or {}).get("assay")
            if mine is not None:
                row = carried.imported(mine, one["stats"]["data"], path)
                entries.append(Entry(row, card_of(machines.get(row.machine), row.device)))
            else:
                entries.append(Entry(_row(one, f"{schedule}:{number}"), card))
    except (KeyError, TypeError, AttributeError) as error:
        raise RowsError(
            f"reading {path}: it looks like pytest-benchmark's, but lacks {error}; "
            "save it anew with --benchmark-json"
        ) from None
    return Side(path.name, tuple(entries))


def _row(one: dict[str, Any], schedule: str) -> Row:
    stats = one["stats"]
    function = one["name"].partition("[")[0]
    data = stats.get("data") or []
    no_samples = "" if data else "saved without its samples; use --benchmark-save-data"
    timer = (one.get("options") or {}).get("timer", "its timer")
    return carried.unjudged(
        op=one.get("group") or function,
        variant=function,
        case=carried.scalars(one.get("params") or {}),
        device="cpu",
        schedule=schedule,
        samples=data,
        method=f"pytest-benchmark {timer}",
        cache="hot",
        calls=int(stats.get("iterations", 1)),
        no_samples=no_samples,
    )


def save(nouns: Sequence[Any], path: Path) -> int:
    """Writes the timed rows, if there are any; how many."""
    timed = [noun for noun in nouns if isinstance(noun, Row) and noun.timing]
    if not timed:
        return 0
    whole = {
        "machine_info": {
            "node": "",
            "system": platform.system(),
            "machine": platform.machine(),
            "cpu": {},
        },
        "commit_info": {},
        "benchmarks": [_benchmark(row) for row in timed],
        "datetime": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "version": f"assay {__version__}",
        "assay": {"machines": carried.machines(nouns)},
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")
    return len(timed)


def _benchmark(row: Row) -> dict[str, Any]:
    mine, samples = carried.exported(row)
    assert row.timing
    case = ", ".join(f"{k}={v}" for k, v in row.case.values.items())
    name = f"{row.op} {row.label}[{case}]"
    params = {k: v for k, v in row.case.values.items() if not _odd(v)}
    return {
        "group": f"{row.op} {row.case.label}".rstrip(),
        "name": name,
        "fullname": name,
        "params": params,
        "param": case,
        "extra_info": {"assay": mine},
        "options": {"timer": row.timing.method, "warmup": row.timing.warmup_calls or False},
        "stats": {**_stats(samples), "iterations": row.timing.calls, "data": list(samples)},
    }


def _odd(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _stats(samples: Sequence[float]) -> dict[str, Any]:
    """What its own tables show, by the usual definitions; quartiles are inclusive ones."""
    mean = statistics.fmean(samples)
    deviation = statistics.stdev(samples) if len(samples) > 1 else 0.0
    q1, middle, q3 = (
        statistics.quantiles(samples, n=4, method="inclusive")
        if len(samples) > 1
        else 3 * [samples[0]]
    )
    iqr = q3 - q1
    inner = [x for x in samples if q1 - 1.5 * iqr <= x <= q3 + 1.5 * iqr]
    far = sum(abs(x - mean) > deviation for x in samples)
    outside = len(samples) - len(inner)
    return {
        "min": min(samples),
        "max": max(samples),
        "mean": mean,
        "stddev": deviation,
        "rounds": len(samples),
        "median": middle,
        "q1": q1,
        "q3": q3,
        "iqr": iqr,
        "iqr_outliers": outside,
        "stddev_outliers": far,
        "outliers": f"{far};{outside}",
        "ld15iqr": min(inner),
        "hd15iqr": max(inner),
        "ops": 1 / mean,
        "total": sum(samples),
    }
