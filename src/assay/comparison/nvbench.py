"""The JSON that nvbench writes, there and back.

One object: `devices`, and `benchmarks` with `states`, each with `axis_values` and `summaries` (a
tag, and named values that are written as text). Cold samples lie beside it, little-endian float32,
in a file that the summary `nv/json/bin:nv/cold/sample_times` names (`--jsonbin`). What Assay knows
beyond that is in a summary of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..errors import RowsError
from ..types import GPU, Machine, Row, Scalar
from . import carried
from .model import UNKNOWN, Entry, Side
from .model import card as card_of

SAMPLES = "nv/json/bin:nv/cold/sample_times"
MINE = "assay/row"
LOST = (
    *carried.LOST,
    "rows timed on a CPU (nvbench has GPUs alone)",
    "samples beyond 24 bits (they are stored in float32)",
)


def is_it(whole: dict[str, Any]) -> bool:
    """Whether this is such a file."""
    return "benchmarks" in whole and "devices" in whole


def load(whole: dict[str, Any], path: Path) -> Side:
    """The rows of such a file. Raises RowsError naming what it lacks."""
    schedule = carried.digest(path)
    cards = {int(d["id"]): str(d.get("name", UNKNOWN)) for d in whole["devices"] or []}
    machines = {m.id: m for m in carried.machines_of(whole.get("assay"), path)}
    entries: list[Entry] = []
    try:
        for bench in whole["benchmarks"]:
            for state in bench.get("states") or []:
                mine = _summary(state, MINE)
                samples = _samples(state, path)
                if mine:
                    row = carried.imported(json.loads(mine["row"]), samples or (), path)
                    card = card_of(machines.get(row.machine), row.device)
                else:
                    device = int(state.get("device") or 0)
                    row = _row(bench, state, samples, f"{schedule}:{len(entries)}")
                    card = cards.get(device, UNKNOWN)
                entries.append(Entry(row, card))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RowsError(
            f"reading {path}: it looks like nvbench's, but {error!r} is missing or not as there; "
            "write it anew with --jsonbin"
        ) from None
    return Side(path.name, tuple(entries))


def _summary(state: dict[str, Any], tag: str) -> dict[str, Any]:
    for one in state.get("summaries") or []:
        if one.get("tag") == tag:
            return {value["name"]: value["value"] for value in one["data"]}
    return {}


def _samples(state: dict[str, Any], path: Path) -> list[float] | None:
    told = _summary(state, SAMPLES)
    if not told:
        return None
    name = Path(str(told["filename"]))
    # Relative to the JSON file; older ones to the folder in which the program ran.
    places = [name] if name.is_absolute() else [path.parent / name, path.parent.parent / name]
    for place in places:
        if place.is_file():
            found = np.fromfile(place, "<f4")
            if len(found) != int(told["size"]):
                raise RowsError(
                    f"reading {path}: {place} holds {len(found)} samples and should hold "
                    f"{told['size']}; was the benchmark run again since?"
                )
            return [float(x) for x in found]
    raise RowsError(f"reading {path}: its samples should be in {places[0]}; copy that folder too")


def _row(
    bench: dict[str, Any], state: dict[str, Any], samples: list[float] | None, schedule: str
) -> Row:
    why = "" if samples else "written without its samples; use --jsonbin"
    if state.get("is_skipped"):
        why = f"skipped: {state.get('skip_reason') or 'no reason is kept'}"
    return carried.unjudged(
        op=str(bench["name"]),
        variant=str(bench["name"]),
        case={v["name"]: _value(v) for v in state.get("axis_values") or []},
        device=f"cuda:{int(state.get('device') or 0)}",
        schedule=schedule,
        samples=samples or (),
        method="nvbench cold",
        cache="L2 refilled by a memset",
        no_samples=why,
    )


def _value(named: dict[str, Any]) -> Scalar:
    kinds: dict[str, Any] = {"int64": int, "float64": float}
    value: Scalar = kinds.get(named.get("type", ""), str)(named["value"])
    return value


def save(nouns: Sequence[Any], path: Path) -> int:
    """Writes the rows timed on a GPU, if any, and their samples beside it; how many."""
    timed = [n for n in nouns if isinstance(n, Row) and n.timing and n.device.startswith("cuda")]
    beside = path.with_name(path.name + "-bin")
    if not timed:
        return 0
    beside.mkdir(exist_ok=True)
    names = list(dict.fromkeys((row.op, row.label) for row in timed))
    benchmarks: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        mine = [row for row in timed if (row.op, row.label) == name]
        numbers = [timed.index(row) for row in mine]
        benchmarks.append(
            {
                "index": index,
                "name": " ".join(name),
                "devices": sorted({_index(row) for row in mine}),
                "axes": _axes(mine),
                "states": [_state(row, beside, n) for row, n in zip(mine, numbers)],
            }
        )
    machines = [noun for noun in nouns if isinstance(noun, Machine)]
    gpus = [gpu for machine in machines[:1] for gpu in machine.gpus]
    whole = {
        "meta": {"version": {"json": {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}}},
        "devices": [_device(i, gpu) for i, gpu in enumerate(gpus)],
        "benchmarks": benchmarks,
        "assay": {"machines": carried.machines(nouns)},
    }
    path.write_text(json.dumps(whole, indent=1) + "\n")
    return len(timed)


def _index(row: Row) -> int:
    return int(row.device.partition(":")[2] or 0)


def _device(index: int, gpu: GPU) -> dict[str, Any]:
    major, minor = gpu.capability
    return {
        "id": index,
        "name": gpu.name,
        "sm_version": 100 * major + 10 * minor,
        "number_of_sms": gpu.multiprocessors,
        "global_memory_size": gpu.memory_bytes,
        "l2_cache_size": gpu.l2_bytes,
    }


def _axes(mine: Sequence[Row]) -> list[dict[str, Any]]:
    found: dict[str, list[Scalar]] = {}
    for row in mine:
        for name, value in row.case.values.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return [
        {
            "name": name,
            "type": _kind(values[0]),
            "flags": "",
            "values": [{"input_string": str(v), "description": "", "value": v} for v in values],
        }
        for name, values in found.items()
    ]


def _kind(value: Scalar) -> str:
    if isinstance(value, (bool, str)):
        return "string"
    return "int64" if isinstance(value, int) else "float64"


def _named(name: str, value: Scalar) -> dict[str, Any]:
    return {"name": name, "type": _kind(value), "value": str(value)}


def _state(row: Row, beside: Path, number: int) -> dict[str, Any]:
    mine, samples = carried.exported(row)
    times = np.asarray(samples, "<f4")
    file = beside / f"{number}.bin"
    file.write_bytes(times.tobytes())
    mean = float(np.mean(samples))
    noise = float(np.std(samples, ddof=1)) / mean if len(samples) > 1 else 0.0
    return {
        "name": f"Device={_index(row)} {row.case.label}".rstrip(),
        "device": _index(row),
        "type_config_index": 0,
        "axis_values": [_named(name, value) for name, value in row.case.values.items()],
        "summaries": [
            _said("nv/cold/sample_size", "Samples", _named("value", len(samples))),
            _said("nv/cold/time/gpu/mean", "GPU Time", _named("value", mean)),
            _said("nv/cold/time/gpu/stdev/relative", "Noise", _named("value", noise)),
            _said(
                SAMPLES,
                "Samples Times File",
                _named("filename", f"{beside.name}/{file.name}"),
                _named("size", len(samples)),
            ),
            _said(MINE, "Assay", _named("row", msgspec.json.encode(mine).decode())),
        ],
        "is_skipped": False,
    }


def _said(tag: str, name: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"tag": tag, "name": name, "data": list(values)}
