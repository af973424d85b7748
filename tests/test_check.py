"""The verdict against its enemies: all of `wrong/` is named, none of `right/` accused."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
WRONG = sorted((HERE / "wrong").glob("*.py"))
RIGHT = sorted((HERE / "right").glob("*.py"))


def literal(path: Path, name: str) -> Any:
    """A table that a file of the zoo states about itself, read without importing it."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    return {}


def options(path: Path) -> dict[str, Any]:
    return {"deadline": 2.0} if path.stem == "deaths" else {}


@pytest.mark.parametrize("path", WRONG, ids=lambda p: p.stem)
def test_every_wrong_kernel_is_named_and_no_other_is_touched(judge, path):
    expected, rows = literal(path, "EXPECT"), judge(path, **options(path))
    labels = {row.label for row in rows}
    assert expected
    assert set(expected) < labels  # each is there, and right ones beside them
    mistaken = []
    for row in rows:
        word, part = expected.get(row.label, ("right", ""))
        if row.word != word or part not in row.reason:
            mistaken.append(f"{row.label}: {word}, {part!r} wanted; got {row.word}: {row.reason}")
    assert not mistaken, "\n" + "\n".join(mistaken)


@pytest.mark.parametrize("path", RIGHT, ids=lambda p: p.stem)
def test_no_right_kernel_is_accused(judge, path):
    rows, finds = judge(path), literal(path, "FINDS")
    accused = [f"{r.label} {r.case.label}: {r.word}: {r.reason}" for r in rows if r.word != "right"]
    assert not accused, "\n" + "\n".join(accused)
    assert any(row.variant != "eager" for row in rows)
    for label, part in finds.items():
        found = [text for row in rows if row.label == label for text in row.verdict.findings]
        assert any(part in text for text in found), (label, found)
