"""The comparison as a table for docs/verdicts.md, with the names of what each let through."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

BEGIN = "<!-- side by side: written by benchmarks/verdict/side_by_side.py -->"
END = "<!-- side by side: end -->"
ASSAY = "Assay"


def score(rows: Sequence[dict[str, Any]], peer: str) -> tuple[list[str], list[str], int, int]:
    """Wrong ones that it passed, right ones that it rejected, and how many of each it was asked."""
    asked = [row for row in rows if _verdict(row, peer) is not None]
    wrong = [row for row in asked if row["wrong"]]
    right = [row for row in asked if not row["wrong"]]
    passed = [_name(row) for row in wrong if _verdict(row, peer)]
    rejected = [_name(row) for row in right if not _verdict(row, peer)]
    return passed, rejected, len(wrong), len(right)


def _verdict(row: dict[str, Any], peer: str) -> bool | None:
    """Whether it passed; None where it was not asked."""
    if peer == ASSAY:
        word = row["assay"]
        return None if word == "not run" else word in ("right", "refused")
    if peer in row["passed"]:
        return True
    return False if peer in row["rejected"] else None


def _name(row: dict[str, Any]) -> str:
    return f"{row['file'].partition('/')[2]} {row['kernel']}"


def text(head: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """The section between the markers."""
    same = [row for row in rows if not row["not_run_by_peers"]]
    wrong, right = (sum(row["wrong"] is kind for row in same) for kind in (True, False))
    others = [row for row in rows if row["not_run_by_peers"]]
    made = [
        BEGIN,
        "",
        f"{wrong} wrong kernels and {right} right ones that a CPU can call, all judged by each; on "
        "the cases that their files declare.",
        "",
        "| judge | wrong ones passed | right ones rejected |",
        "|---|---|---|",
    ]
    lists = []
    for name, version in head["peers"].items():
        passed, rejected, asked_wrong, asked_right = score(same, name)
        if not asked_wrong + asked_right:
            made.append(f"| {name} | not asked: {version} | |")
            continue
        made.append(
            f"| {name} {version} | {len(passed)} of {asked_wrong} | "
            f"{len(rejected)} of {asked_right} |"
        )
        lists += _lists(name, passed, rejected)
    rest = score(others, ASSAY)
    made += [
        "",
        f"{len(others)} more kernels can't be called here by peers (CUDA C++ needs a GPU, and what "
        f"the interpreter or simulator refuses); Assay passed {len(rest[0])} of the {rest[2]} "
        f"wrong ones among them that it ran, and rejected {len(rest[1])} of the {rest[3]} right "
        "ones.",
        *lists,
        "",
        END,
    ]
    return "\n".join(made)


def _lists(name: str, passed: list[str], rejected: list[str]) -> list[str]:
    lines = []
    for what, names in (("let through", passed), ("rejected though right", rejected)):
        if names:
            listed = ", ".join(f"`{n}`" for n in names)
            lines += ["", f"**{name}** {what}: {listed}."]
    return lines


def put(page: Path, section: str) -> None:
    """Writes the section between its markers, or at the page's end."""
    old = page.read_text() if page.is_file() else "# Verdicts\n"
    before, begin, rest = old.partition(BEGIN)
    if not begin:
        page.write_text(f"{old.rstrip()}\n\n## Side by side with other judges\n\n{section}\n")
        return
    after = rest.partition(END)[2]
    page.write_text(f"{before}{section}{after}")
