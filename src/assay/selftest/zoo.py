"""The zoo of kernels: wrong ones and right but unusual ones, and what each file says of itself.

A file of the zoo is a target like any other. What must be said of its kernels stands in literals
at its top, which are read here without importing it:

    EXPECT = {"way/name": ("verdict word", "part of the reason")}   wrong kernels; all others: right
    IDS = {"way/name": "V1 X04"}, or one string for the whole file   what each of them stands for
    TWIN = {"way/name": "way/right_one"}      the right kernel one edit away; else the reference
    HOSTILE = True                            a wrong file that shows on hostile inputs alone
    FINDS = {"way/name": "part of a finding"} what is to be seen on a right kernel
    OPTIONS = {"deadline": 2.0}               of the request
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import AssayError

WRONG, RIGHT = "wrong", "right"
CHECKOUT = Path(__file__).resolve().parents[3] / "tests"


def folder() -> Path:
    """The folder that holds `wrong` and `right`: beside this file in a wheel, else the tests'."""
    for place in (Path(__file__).parent / "kernels", CHECKOUT):
        if (place / WRONG).is_dir() and (place / RIGHT).is_dir():
            return place
    raise AssayError(
        f"the zoo of kernels is neither beside {Path(__file__).parent} nor in {CHECKOUT}; "
        "install assay from its wheel or from a whole checkout"
    )


def samples(kind: str, place: Path | None = None) -> list[Sample]:
    """Every file of one zoo, by name."""
    return [Sample(path) for path in sorted(((place or folder()) / kind).glob("*.py"))]


@dataclass(frozen=True)
class Sample:
    """One file of the zoo."""

    path: Path

    @property
    def wrong(self) -> bool:
        return self.path.parent.name == WRONG

    @property
    def name(self) -> str:
        """`wrong/values`, as people call it."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text())

    def literal(self, name: str, default: Any = None) -> Any:
        """A literal at the top of the file; the default if it has none of that name."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
                return ast.literal_eval(node.value)
        return default

    @cached_property
    def expect(self) -> dict[str, tuple[str, str]]:
        return dict(self.literal("EXPECT", {}))

    @cached_property
    def finds(self) -> dict[str, str]:
        return dict(self.literal("FINDS", {}))

    @cached_property
    def options(self) -> dict[str, Any]:
        return dict(self.literal("OPTIONS", {}))

    @cached_property
    def hostile(self) -> bool:
        """Whether it is judged on hostile inputs too: right kernels always are."""
        return bool(self.literal("HOSTILE", not self.wrong))

    @cached_property
    def ids(self) -> dict[str, tuple[str, ...]]:
        """What the whole file ("") and each of its kernels stand for."""
        said = self.literal("IDS", {})
        if isinstance(said, str):
            return {"": tuple(said.split())}
        return {label: tuple(text.split()) for label, text in said.items()}

    def twin(self, label: str) -> str:
        """The label of the right kernel one edit away, `file.py:label` if it is elsewhere."""
        twins: dict[str, str] = self.literal("TWIN", {})
        return twins.get(label) or twins.get(label.split()[0]) or "eager"
