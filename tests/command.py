"""The command line, run as a user runs it: in a process of its own, its output in a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def assay(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """What `assay WORDS` did in a folder, at 80 columns. env: beside this process's own."""
    return subprocess.run(
        [sys.executable, "-m", "assay", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "COLUMNS": "80", **env},
    )
