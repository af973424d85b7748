"""What an H100 counted for single accesses (benchmarks/simt_counts.py) is what we count."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results" / "nvidia-h100-80gb-hbm3" / "simt_counts.jsonl"
sys.path.insert(0, str(BENCHMARKS))

pytest.importorskip("cuda.bindings")
pytest.importorskip("torch")

import simt_counts  # noqa: E402
from simt_card import compare, probes  # noqa: E402

pytestmark = pytest.mark.full

KERNELS = ("shared_load<uint2>", "shared_load<uint4>", "shared_atomic<unsigned>")
"""Those whose passes depend on which lanes pair up, or meet in a bank."""


def on_card() -> dict[str, dict[str, list[int]]]:
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()[1:]]
    return {row["name"]: row["measures"] for row in rows if row["kind"] == "probe"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_single_accesses_count_as_on_the_card(kernel: str) -> None:
    counted = on_card()
    chosen = [probe for probe in probes.every() if probe.kernel == kernel]
    assert len(chosen) > 30
    for case in simt_counts.probe_cases(chosen):
        counts, _, _ = simt_counts.run_here(case)
        for measure, (_, card) in counted[case.name].items():
            kinds, what, _ = compare.MEASURES[measure]
            ours = sum(getattr(counts.access(kind), what) for kind in kinds)
            assert ours == card, (case.name, measure)
