"""`.ncu-rep` reports, through NVIDIA's own optional package `ncu_report`.

The interface is that of its documentation (Python Report Interface) and of ncu-report 2026.3.1: a
report has ranges, a range has actions (profiled kernels), an action has metrics and rule results.
Not tried on a real report: none was at hand.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path
from typing import Any

from ...errors import AssayError, NotRun
from .ncu import Finding, Kernel, Metric, Report, Size

KINDS = {"OPTIMIZATION": "OPT", "OK": "INF", "WARNING": "WRN", "ERROR": "ERR"}
"""MsgType, as the details page prints it."""
ABSENT = (
    "reading {path}: the module ncu_report is not installed; pip install ncu-report, or put "
    "extras/python of Nsight Compute in PYTHONPATH; or export it where Nsight Compute is: "
    "ncu --import {path} --page details --csv > report.csv"
)


def read(path: Path) -> Report:
    """Reads a report. Raises NotRun without the package, AssayError for what it can't load."""
    if importlib.util.find_spec("ncu_report") is None:
        raise NotRun(ABSENT.format(path=path))
    module = importlib.import_module("ncu_report")
    try:
        context = module.load_report(str(path))
    except (RuntimeError, OSError, ValueError) as error:
        raise AssayError(f"reading {path} with ncu_report: {error}") from None
    kernels: list[Kernel] = []
    for number in range(context.num_ranges()):
        profiled = context.range_by_idx(number)
        for index in range(profiled.num_actions()):
            kernels.append(_kernel(len(kernels), profiled.action_by_idx(index)))
    if not kernels:  # what is no report at all is loaded without a word
        raise AssayError(f"reading {path} with ncu_report: it holds no profiled kernel")
    return Report(str(path), "ncu-rep", tuple(kernels))


def _kernel(number: int, action: Any) -> Kernel:
    metrics = {}
    for name in action.metric_names():
        found = action.metric_by_name(name)
        metrics[name] = Metric(name, found.unit() or "", str(found.value()))
    major = metrics.get("device__attribute_compute_capability_major")
    minor = metrics.get("device__attribute_compute_capability_minor")
    return Kernel(
        name=action.name(),
        number=number,
        grid=_size(metrics, "launch__grid_dim_"),
        block=_size(metrics, "launch__block_dim_"),
        capability=f"{major.text}.{minor.text}" if major and minor else "",
        sections={"": metrics},
        findings=tuple(_finding(dict(rule)) for rule in action.rule_results_as_dicts()),
    )


def _size(metrics: dict[str, Metric], prefix: str) -> Size | None:
    values = [metrics[prefix + axis].value if prefix + axis in metrics else None for axis in "xyz"]
    if any(value is None for value in values):
        return None
    x, y, z = (int(value or 0) for value in values)
    return x, y, z


def _finding(rule: dict[str, Any]) -> Finding:
    message, speedup = _dict(rule.get("rule_message")), _dict(rule.get("speedup_estimation"))
    said = [str(message.get(key, "")) for key in ("title", "message")]
    percent = speedup.get("speedup")
    kind, speeds = _word(message.get("type")), _word(speedup.get("type")).lower()
    return Finding(
        section=str(rule.get("section_identifier", "")),
        kind=KINDS.get(kind, kind),
        text=" ".join(": ".join(part for part in said if part).split()),
        rule=str(rule.get("rule_identifier", "")),
        speedup_percent=None if percent is None else float(percent),
        speedup_kind=speeds if speeds in ("local", "global") else "",
    )


def _word(value: Any) -> str:
    """The name of an enumeration's member."""
    return str(getattr(value, "name", value or ""))


def _dict(value: Any) -> dict[str, Any]:
    """A part of a rule's result; some versions give it as the text of a dictionary."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            return {"message": value}
    return value if isinstance(value, dict) else {}
