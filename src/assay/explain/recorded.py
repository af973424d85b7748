"""Explanations of saved rows, and of files that other tools recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..clock.plausible import HOST_BOUND
from ..errors import AssayError
from ..inside.geometry import geometry
from ..inside.geometry.model import Geometry
from ..types import GPU, Compiled, Machine, Roofs, Row
from .cards import Card, of_architecture, of_machine
from .model import Explanation, Facts, Launch
from .rank import explain
from .text import micro

Noun = object


def of_rows(nouns: Iterable[Noun]) -> Iterator[Explanation]:
    """One explanation for each timed row, of what the rows and the machine in them say."""
    for _, _, found in explained(nouns):
        yield found


def explained(nouns: Iterable[Noun]) -> Iterator[tuple[Row, GPU | None, Explanation]]:
    """The same beside each row and the GPU that it was timed on; None: on a CPU."""
    kept = list(nouns)
    machines = {one.id: one for one in kept if isinstance(one, Machine)}
    roofs = {(one.device): one for one in kept if isinstance(one, Roofs)}
    for row in kept:
        if isinstance(row, Row) and (row.timing is not None or host_bound(row)):
            machine = machines.get(row.machine)
            facts = facts_of_row(row, machine, roofs.get(row.device))
            of_gpu = facts.seconds is not None or facts.host_bound
            found = explain(facts) if of_gpu else _on_a_cpu(row, facts)
            yield row, machine.gpu(row.device) if machine else None, found


def _on_a_cpu(row: Row, facts: Facts) -> Explanation:
    """The model is one of GPUs: of a time on a CPU only its share of a ceiling can be told."""
    assert row.timing is not None
    share = row.timing.share
    of = f", {share.value:.0%} of {share.of}" if share else ""
    said = f"{micro(row.timing.median)} measured on {row.device or 'a CPU'}{of}: no GPU was timed"
    return Explanation(facts, "", said)


def facts_of_row(row: Row, machine: Machine | None, roofs: Roofs | None) -> Facts:
    """What a row says. Without a GPU in it the card is one of a data sheet, and times are left out,
    since a CPU's say nothing of a GPU."""
    gpu = machine.gpu(row.device) if machine else None
    kernels = row.counters.kernels if row.counters else ()
    arch = next((one.arch for one in kernels if one.arch), "sm_90")
    card = of_machine(gpu, roofs) if gpu else of_architecture(arch)
    made = Facts(
        card=card,
        op=row.op,
        label=row.label,
        case=row.case.label,
        launches=tuple(launch for one in kernels for launch in _launch(one, card)),
        must_bytes=row.bytes,
        flops=row.flops,
        precision=row.precision,
        dtype=str(row.case.values.get("dtype", "")),
        unknown=("accesses: rows have no counts; assay explain TARGET -k counts them",),
    )
    timing = row.timing
    if gpu is None or (timing is None and not host_bound(row)):
        why = f"speed: it was timed on {row.device or 'no device'}, not on a GPU"
        return replace(made, unknown=(*made.unknown, why))
    return replace(made, **timed(row))


def timed(row: Row) -> dict[str, Any]:
    """The measured fields of the facts of a row that was timed on a GPU, or is bound by its host.

    Of the latter, what the host took is measured, and the time of the GPU is not.
    """
    if row.timing is None:
        rejected = row.rejected
        assert rejected is not None
        return {
            "host_bound": row.not_timed,
            "host_seconds": rejected.host_seconds,
            "wall_seconds": rejected.wall_seconds,
            "sync_seconds": rejected.sync_seconds,
            "kernel_seconds": rejected.kernel_seconds,
        }
    timing = row.timing
    share = timing.share
    return {
        "seconds": timing.median,
        "method": f"{timing.method}, {timing.cache}",
        "host_seconds": timing.host_seconds,
        "wall_seconds": timing.wall_seconds,
        "sync_seconds": timing.sync_seconds,
        "kernel_seconds": timing.kernel_seconds,
        "share": share.value if share else None,
        "share_of": share.of if share else "",
    }


def host_bound(row: Row) -> bool:
    """Right, and without a time because the GPU waited for the host: that says what decides."""
    return row.rejected is not None and row.not_timed.startswith(HOST_BOUND)


def _launch(one: Compiled, card: Card) -> Iterator[Launch]:
    if one.grid is None or one.block is None:
        return
    made: Geometry = geometry(
        one.grid,
        one.block,
        arch=card.arch,
        registers=one.registers,
        static_shared=one.shared_bytes or 0,
        dynamic_shared=one.dynamic_shared_bytes or 0,
        multiprocessors=card.multiprocessors,
        name=one.name,
    )
    spilled = (one.spill_store_bytes or 0) + (one.spill_load_bytes or 0)
    yield Launch(made, 1, spilled, one.stack_bytes or 0)


def of_file(path: Path, rows: int = 10) -> Iterator[str]:
    """What a trace, a report of Nsight Compute or an export of Nsight Systems tells of causes.

    Raises AssayError for a file that is none of them, NotRun where a package is missing.
    """
    from ..inside.reading.files import read, summary
    from ..inside.reading.nsys_stats import Stats
    from ..inside.reading.trace import Trace
    from .peers import of_kernel, of_trace

    found = read(path)
    yield from summary(path, rows)
    yield ""
    if isinstance(found, Trace):
        yield from of_trace(found)
        return
    if isinstance(found, Stats):
        yield "  not known: who waits for whom, since sums have no gaps between kernels; the SQLite"
        yield "    export of the same recording has (nsys export --type=sqlite)"
        return
    if not found.kernels:
        raise AssayError(f"explaining {path}: it holds no kernel")
    for kernel in found.kernels[:rows]:
        yield f"{kernel.name[:76]}"
        yield from of_kernel(kernel)
