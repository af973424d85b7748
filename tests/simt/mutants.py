"""Kernels with one barrier, wait or fence left out: which of them may stay unnoticed, and why."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import corpus
from kernels.entry import Entry

import assay.simt as simt

REDUNDANT: dict[str, tuple[tuple[str, int], ...]] = {
    # Of the sites at the line with this text, so many may be left out, by this proof:
    # the last fold's end: nothing writes to tree after it
    "softmax<float>": (("tree is written again", 1),),
    "layernorm": (("tree is written again", 1),),
    "cross_entropy": (("tree is written again", 1),),
    # the last step leaves part[.][0] to lane 0, which wrote it and is the only one to read it
    "norm_rows": (("__syncwarp();", 1),),
    # the end of the second pass: what follows are thread 0's own words of global memory
    "batch_statistics": (("__syncthreads();", 1),),
    # the second call's end: nothing writes to of_warp after it
    "called_barriers": (("__syncthreads();", 1),),
    # 32 raking lanes are reduced by shuffles: nothing is stored after the barrier of the warp
    # that guards their storage (block_reduce_raking.cuh: warp_storage is empty)
    "cub_reduce": (("rake).Reduce", 2),),
    # the last tile: nothing is written to p and q after it
    "numba matmul": (("cuda.syncthreads()", 1),),
    # step 32: the first warp adds 0 to its words, so it stores what the others read anyway; and
    # after it each thread reads its own word
    "numba scan": (("cuda.syncthreads()", 2),),
}
GAPS: dict[str, tuple[tuple[str, int], ...]] = {}
"""Not redundant, and not noticed: what the watching does not see, as docs/simt.md says."""


@dataclass(frozen=True)
class Mutant:
    """A site of an entry's kernel, left out. caught: by what, or an empty text."""

    site: simt.Synchronisation
    caught: str


def mutants(entry: Entry) -> list[Mutant]:
    """Each of the entry's kernel's sites left out in turn."""
    ptx, name = ptx_of(entry)
    return [
        Mutant(site, _caught(entry, ptx, name, site.number)) for site in simt.barriers(ptx, name)
    ]


def ptx_of(entry: Entry) -> tuple[str, str]:
    return corpus.ptx_of(entry) if entry.way == "cuda" else corpus.run(entry).ptx[0]


def _caught(entry: Entry, ptx: str, name: str, number: int) -> str:
    args = entry.make(corpus.SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if entry.way == "cuda":
            ran = corpus.run_cuda(entry, args, simt.load(ptx, entry=name, drop=number))
        else:
            ran = corpus.WAYS[entry.way](entry, args, corpus.Launches(number))
    return str(ran.faults[0]) if ran.faults else corpus.wrong(entry, ran)


def unproven(entry: Entry, found: list[Mutant]) -> list[Mutant]:
    """Those that nothing noticed, beyond what the table allows."""
    left: list[Mutant] = []
    allowed = dict(REDUNDANT.get(entry.name, ()))
    for text, count in GAPS.get(entry.name, ()):
        allowed[text] = allowed.get(text, 0) + count
    for mutant in found:
        if mutant.caught:
            continue
        place = mutant.site.place
        line = Path(place.file).read_text().splitlines()[place.line - 1] if place else ""
        known = [text for text, count in allowed.items() if text in line and count > 0]
        if known:
            allowed[known[0]] -= 1
        else:
            left.append(mutant)
    return left


def main(words: list[str]) -> None:
    sites = missed = 0
    for entry in corpus.ENTRIES:
        if entry.mutate and (not words or any(word in entry.name for word in words)):
            found = mutants(entry)
            left = unproven(entry, found)
            sites, missed = sites + len(found), missed + len(left)
            quiet = sum(not m.caught for m in found)
            print(f"{entry.name:28}{len(found):3} sites, {quiet} quiet", flush=True)
            for mutant in left:
                print(f"    not noticed: {mutant.site.number} {mutant.site}", flush=True)
    print(f"{sites} sites, {missed} neither noticed nor proven redundant")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
