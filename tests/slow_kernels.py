"""Planted slow kernels and sound ones, in copies whose files and symbols have random names."""

from __future__ import annotations

import ast
import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).parent / "slow"
HELD_OUT = FOLDER / "unseen"
"""Kernels that the model of explain was never tuned on: its misses there are stated, not mended."""
EXPECT = re.compile(r"^EXPECT = \{(?:[^\n]*|\n.*?^)\}\n", re.DOTALL | re.MULTILINE)
KERNEL = re.compile(r"__global__ void (?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(")
FUNCTION = re.compile(r"def (\w+_(?:slow|twin|sound))\b")
VARIANT = re.compile(r'"((?:cuda|eager)/\w+)"')


@dataclass(frozen=True)
class Planted:
    """One variant, as explain sees it and as it is known here."""

    path: Path
    op: str
    variant: str
    known: str
    """`scale cuda/slow`: what it is called in tests/slow."""
    cause: str
    """Empty: sound, or the repaired twin."""
    held_out: bool = False


def planted(folder: Path, seed: int, *, held_out: bool = False) -> Iterator[Planted]:
    """Every variant of tests/slow, in renamed copies in `folder`; held_out: those of unseen too."""
    chance = random.Random(seed)
    for path in sorted(FOLDER.glob("*.py")):
        yield from _renamed(path, folder, chance)
    for path in sorted(HELD_OUT.glob("*.py")) if held_out else ():
        for one in _renamed(path, folder, chance):
            yield replace(one, held_out=True)


def _renamed(path: Path, folder: Path, chance: random.Random) -> Iterator[Planted]:
    text = path.read_text()
    found = EXPECT.search(text)
    assert found, f"{path} has no EXPECT"
    expect: dict[str, dict[str, str]] = ast.literal_eval(found.group().partition("=")[2].strip())
    text = text.replace(found.group(), "")
    text = '"""Kernels."""\n' + text.partition('"""\n')[2]
    names = dict.fromkeys([*expect, *KERNEL.findall(text), *FUNCTION.findall(text)])
    new = {name: _name(chance) for name in names}
    variants = {v: f"{v.split('/')[0]}/{_name(chance)}" for v in VARIANT.findall(text)}
    text = VARIANT.sub(lambda m: f'"{variants[m[1]]}"', text)
    text = re.sub(r"\b\w+\b", lambda m: new.get(m[0], m[0]), text)
    to = folder / f"{_name(chance)}.py"
    to.write_text(text)
    for op, causes in expect.items():
        for variant in _of(path, op):
            yield Planted(
                to, new[op], variants[variant], f"{op} {variant}", causes.get(variant, "")
            )


def _of(path: Path, op: str) -> list[str]:
    """Variants that are written for an op, by the text of the file."""
    return re.findall(rf'^@{op}\.(?:launcher|variant)\("([^"]+)"', path.read_text(), re.MULTILINE)


def _name(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_lowercase, k=9))


def table(said: list[tuple[str, str]]) -> Iterator[str]:
    """(true cause, first finding) of each kernel, as a confusion table: rows are what is true."""
    counts: dict[tuple[str, str], int] = {}
    for pair in said:
        counts[pair] = counts.get(pair, 0) + 1
    for (true, found), number in sorted(counts.items()):
        mark = "" if true == found else "   WRONG"
        yield f"{number:>3}  {true or 'sound':<24} found: {found or 'nothing'}{mark}"
