"""Counters of kernels by Nsight Compute: a child process launches them, `ncu` reads them."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import launch
from .build import FOLDER, tool

LAUNCHER = Path(__file__).with_name("launch.py")
COMMON = ("--clock-control", "none", "--cache-control", "none", "--target-processes", "all")


@lru_cache
def card() -> tuple[str, str, str]:
    """(name, driver, arch such as sm_90) of the first GPU."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    name, driver, capability = (part.strip() for part in text.splitlines()[0].split(","))
    return name, driver, f"sm_{capability.replace('.', '')}"


def version() -> str:
    text = subprocess.run([tool("ncu"), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version (\S+)", text)
    return found.group(1) if found else ""


def profile(
    name: str, launches: list[launch.Launch], metrics: list[str]
) -> tuple[list[dict[str, float]], list[list[Any]]]:
    """Of each launch its counters (all of `metrics`, summed) and its arrays afterwards."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    job = FOLDER / f"{name}.job"
    launch.save(job, launches)
    asked = ",".join(m if "." in m else f"{m}.sum" for m in metrics)
    command = [tool("ncu"), *COMMON, "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--metrics", asked, sys.executable, str(LAUNCHER), str(job)]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = parsed(done.stdout)
    if done.returncode or len(rows) != len(launches):
        raise SystemExit(
            f"ncu: {len(rows)} of {len(launches)} kernels, exit {done.returncode}\n"
            f"{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        )
    return rows, launch.results(job)


def parsed(text: str) -> list[dict[str, float]]:
    """The rows of `--csv --page raw`: after what the program printed, a line of names, of units."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    found = []
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if not (row["ID"] or "").isdigit():
            continue
        found.append({k.split(".")[0]: number(v) for k, v in row.items() if k and "__" in k})
    return found


def number(text: str | None) -> float:
    """A counter; NaN where ncu could not read it."""
    try:
        return float((text or "nan").replace(",", ""))
    except ValueError:
        return float("nan")
