"""docs/coverage.md is true: every checklist id once, every test it names exists."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
IDS = ROOT / "tests" / "fixtures" / "mission_ids.txt"
PAGE = ROOT / "docs" / "coverage.md"

HEADER = ["id", "kind", "what", "test"]
KINDS = ("core", "supporting", "claim", "bug")
NAMED = re.compile(r"(tests/[\w/]+\.py)::(?:(Test\w*)::)?(test_\w+)")


def expected(text: str) -> dict[str, tuple[int, str]]:
    """Read lines such as `1: A02 A04*` into id -> (section, kind); R are claims, X are bugs."""
    ids: dict[str, tuple[int, str]] = {}
    for line in text.splitlines():
        section, _, words = line.partition(":")
        for word in words.split():
            name = word.removesuffix("*")
            assert re.fullmatch(r"[A-Z]\d\d", name), f"not an id: {word}"
            assert name not in ids, f"{name} is listed twice"
            usual = "supporting" if word.endswith("*") else "core"
            ids[name] = (int(section), {"R": "claim", "X": "bug"}.get(name[0], usual))
    return ids


def is_defined(root: Path, path: str, cls: str | None, name: str) -> bool:
    """Whether the file defines the function, at its top level or directly in the class."""
    file = root / path
    if not file.is_file():
        return False
    body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
    if cls:
        body = [s for c in body if isinstance(c, ast.ClassDef) and c.name == cls for s in c.body]
    return any(
        isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name == name for s in body
    )


def problems(page: str, wanted: dict[str, tuple[int, str]], root: Path) -> list[str]:
    """Everything that is wrong with the page, one sentence each; empty when it is true."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    section = 0
    for number, line in enumerate(page.splitlines(), 1):
        line = line.strip()
        if heading := re.match(r"## (\d+)\. \S", line):
            section = int(heading[1])
        if not line.startswith("|"):
            continue
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells == HEADER or cells == ["---"] * 4:
            continue
        if len(cells) != 4 or not line.endswith("|") or not all(cells):
            found.append(f"line {number}: a row has four filled cells: {line}")
            continue
        name, kind, _, tests = cells
        seen[name] += 1
        if name not in wanted:
            found.append(f"line {number}: unknown id {name}")
        elif wanted[name] != (section, kind):
            right = wanted[name]
            found.append(
                f"line {number}: {name} is {right[1]} of section {right[0]},"
                f" not {kind} of section {section}"
            )
        if tests == "open":
            continue
        for word in (w.strip().strip("`") for w in tests.split(",")):
            parts = NAMED.fullmatch(word)
            if not parts:
                found.append(f"line {number}: {name}: neither `open` nor a test: {word!r}")
            elif not is_defined(root, *parts.groups()):
                found.append(f"line {number}: {name}: no such test: {word}")
    found += [f"{name} has {n} rows" for name, n in seen.items() if n > 1]
    found += [f"{name} has no row" for name in wanted if name not in seen]
    if count_line(wanted) not in page.splitlines():
        found.append(f"the count line should read: {count_line(wanted)}")
    return found


def count_line(wanted: dict[str, tuple[int, str]]) -> str:
    n = Counter(kind for _, kind in wanted.values())
    return f"{len(wanted)} ids: " + ", ".join(f"{n[k]} {k}" for k in KINDS) + "."


def test_the_page_is_true():
    wanted = expected(IDS.read_text(encoding="utf-8"))
    assert problems(PAGE.read_text(encoding="utf-8"), wanted, ROOT) == []


def test_the_expected_set_is_whole():
    wanted = expected(IDS.read_text(encoding="utf-8"))
    assert {section for section, _ in wanted.values()} == set(range(1, 13))
    assert [i for i in wanted if i[0] == "R"] == [f"R{n:02}" for n in range(1, 18)]
    assert [i for i in wanted if i[0] == "X"] == [f"X{n:02}" for n in range(1, 41)]


# The checker itself, on a page of four ids.

SMALL = expected("1: A02 A04*\n11: R01\n12: X01\n")
GOOD = """\
4 ids: 1 core, 1 supporting, 1 claim, 1 bug.

## 1. Authoring
| id | kind | what | test |
|---|---|---|---|
| A02 | core | a string | `tests/test_a.py::test_y` |
| A04 | supporting | a folder | tests/test_a.py::TestC::test_z, tests/test_a.py::test_y |
## 11. Claims
| R01 | claim | a number | tests/test_a.py::test_async |
## 12. Bugs
| X01 | bug | a bug | open |
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(
        "def test_y():\n    def test_inner(): pass\n"
        "async def test_async(): pass\n"
        "class TestC:\n    def test_z(self): pass\n"
        "# def test_comment(): pass\n"
    )
    return tmp_path


def test_checker_passes_a_good_page(root: Path):
    assert problems(GOOD, SMALL, root) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("| X01 | bug | a bug | open |", "", ["X01 has no row"]),
        ("| X01 |", "| X99 |", ["line 11: unknown id X99", "X01 has no row"]),
        ("## 12.", "| A02 | core | again | open |\n## 12.", ["A02 is core of section 1", "2 rows"]),
        ("| A02 | core |", "| A02 | bug |", ["A02 is core of section 1, not bug of section 1"]),
        ("## 12. Bugs\n", "", ["X01 is bug of section 12, not bug of section 11"]),
        ("a bug | open |", "a bug | |", ["four filled cells"]),
        ("a bug | open |", "a bug | open | more |", ["four filled cells"]),
        ("a bug | open |", "a bug | open", ["four filled cells"]),
        ("a bug | open |", "a bug | done |", ["neither `open` nor a test: 'done'"]),
        ("a bug | open |", "a bug | open, tests/test_a.py::test_y |", ["nor a test: 'open'"]),
        ("a bug | open |", "a bug | tests/test_a.py |", ["nor a test: 'tests/test_a.py'"]),
        ("a bug | open |", "a bug | tests/test_a.py::test_y[1] |", ["nor a test"]),
        ("a bug | open |", "a bug | tests/../tests/test_a.py::test_y |", ["nor a test"]),
        ("a bug | open |", "a bug | tests/test_b.py::test_y |", ["no such test: tests/test_b.py"]),
        ("::test_async", "::test_gone", ["R01: no such test: tests/test_a.py::test_gone"]),
        ("::test_async", "::test_z", ["no such test: tests/test_a.py::test_z"]),
        ("::test_async", "::test_inner", ["no such test"]),
        ("::test_async", "::test_comment", ["no such test"]),
        ("TestC::test_z", "TestC::test_y", ["no such test: tests/test_a.py::TestC::test_y"]),
        ("4 ids", "5 ids", ["the count line should read: 4 ids"]),
    ],
)
def test_checker_names_a_planted_fault(root: Path, old: str, new: str, says: list[str]):
    assert GOOD.count(old) == 1
    found = problems(GOOD.replace(old, new), SMALL, root)
    for words in says:
        assert any(words in problem for problem in found), (words, found)


def test_a_bad_row_in_the_real_page_is_found():
    wanted = expected(IDS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    row = "| Z99 | core | planted | tests/test_coverage.py::test_that_is_not_there |"
    assert sorted(problems(f"{page}\n{row}\n", wanted, ROOT)) == [
        f"line {len(page.splitlines()) + 2}: Z99: no such test:"
        " tests/test_coverage.py::test_that_is_not_there",
        f"line {len(page.splitlines()) + 2}: unknown id Z99",
    ]
