"""The shape of the code: imports point one way, starting is quick, files are small."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import assay

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "assay"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

MOST_LINES = 400
LONGER: dict[str, str] = {
    "clock/timing.py": "the process that samples, from its first message to its last",
    "simt/adapters/inductor.py": "all that Inductor is made to believe while it writes for a GPU",
    "simt/adapters/triton.py": "what stands in for Triton's driver, its launcher and its tuner",
    "simt/emit.py": "one class: the C++ of an instruction needs all that is known of a function",
}
"""Files that may be longer, each with a reason that a reader would accept."""

BASE = {"errors", "types", "timings"}
DECLARING = BASE | {"cases", "op", "rows", "cache"}
CHILDREN = {"processes", "machine", "session"}
ALLOWED: dict[str, set[str]] = {
    # What a part may import, beside itself. Nouns know nothing; each line adds to those above it.
    "errors": set(),
    "timings": set(),
    "types": {"timings"},
    "rows": BASE,
    "cache": BASE,
    "cases": BASE,
    "shapes": set(),
    "op": BASE | {"cache", "cases", "gradient", "shapes"},  # Op.gradient makes another Op
    "gradient": BASE | {"op"},
    "processes": BASE,
    "machine": BASE | {"processes"},
    "session": BASE | {"processes", "machine"},
    "faults": BASE,
    "drawing": set(),
    "hostile": DECLARING,
    "inputs": DECLARING | {"faults", "hostile"},
    "lines": DECLARING,
    "target": DECLARING | {"adapt"},
    "adapt": DECLARING | {"target", "inputs", "ways"},
    "hardware": set(),
    "unsynced": set(),
    "simt": BASE | {"cache", "hardware"},
    "ways": DECLARING | {"hardware", "simt"},
    "build": DECLARING | {"ways", "adapt", "inputs"},
    "describe": DECLARING | {"target", "adapt", "lines", "processes"},
    "choosing": BASE | {"describe"},
    "verdict": DECLARING
    | CHILDREN
    | {"drawing"}
    | {"adapt", "build", "describe", "faults", "gradient", "hostile", "inputs"}
    | {"simt", "target", "ways"},
    "clock": DECLARING
    | CHILDREN
    | {"build", "verdict", "describe", "faults", "hardware", "inputs", "target", "ways"},
    "roofs": DECLARING | CHILDREN | {"clock", "hardware", "ways"},
    "watching": DECLARING
    | CHILDREN
    | {"verdict", "clock", "choosing", "describe", "pipeline", "request", "target"},
    "jobs": {"describe", "clock", "verdict", "watching"},
    "sanitize": DECLARING | CHILDREN | {"build", "faults", "inputs", "target", "verdict"},
    "request": DECLARING | {"machine", "clock", "target", "verdict", "ways"},
    "pipeline": DECLARING
    | {"unsynced"}
    | CHILDREN
    | {"sanitize", "roofs.store", "selftest.store"}
    | {"verdict", "clock", "choosing", "describe", "request", "target"},
    # A saved report is printed elsewhere, next year: rows and arithmetic are all it needs.
    "report": BASE | {"rows", "clock.statistics", "clock.floor"},
    "doctor": BASE,
    "inside": DECLARING
    | CHILDREN
    | {"adapt", "build", "comparison.measure", "counting", "describe", "doctor", "faults"}
    | {"hardware", "inputs", "report", "simt", "single", "target", "ways"},
    "counting": DECLARING | CHILDREN | {"simt", "single", "target", "ways"},
    "mapping": DECLARING
    | CHILDREN
    | {"drawing", "inputs", "simt", "single", "target", "verdict", "ways"},
    "comparison": DECLARING
    | CHILDREN
    | {"clock.statistics", "pipeline", "report", "request", "target"},
    "api": DECLARING | CHILDREN | {"counting", "mapping", "pipeline", "request", "simt", "target"},
}
"""Parts that are not listed (the commands, the operators) may import anything, and no part that is
listed may import them."""


def part_of(module: str) -> str:
    return module.split(".")[0]


def imports(module: str, path: Path, *, top_level: bool = False) -> set[str]:
    """Modules of Assay (as `clock.statistics`) and others (as `torch`) that a file imports.

    top_level: only those imported when the file itself is.
    """
    package = ["assay", *module.split(".")]
    if path.name != "__init__.py" or module.endswith("__init__"):
        package.pop()
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if top_level and isinstance(child, (ast.FunctionDef, ast.Lambda)):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) - child.level + 1] if child.level else []
                name = ".".join([*base, *([child.module] if child.module else [])])
                for alias in child.names:
                    inner = f"{name}.{alias.name}".removeprefix("assay.")
                    known = inner in MODULES or f"{inner}.__init__" in MODULES
                    found.add(f"assay.{inner}" if known else name)
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


def allowed(importer: str, imported: str) -> bool:
    """Whether one module of Assay may import another."""
    part, other = part_of(importer), part_of(imported)
    if part not in ALLOWED or part == other:
        return True
    return other in ALLOWED[part] or imported in ALLOWED[part]


def test_imports_point_one_way() -> None:
    gone = set(ALLOWED) - {part_of(module) for module in MODULES}
    assert not gone, f"there is no {gone} any more"
    wrong, seen = [], 0
    for module, path in MODULES.items():
        for name in imports(module, path):
            if not name.startswith("assay."):
                continue
            seen += 1
            if not allowed(module, name.removeprefix("assay.")):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert seen > 100, "else this reads the imports wrongly"
    assert not wrong, "\n".join(wrong)


def test_the_reader_of_imports_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "table.py"
    path.write_text(
        "from ..clock.statistics import ratio\nfrom . import units\nfrom .. import rows\n"
        "import torch.nn\ndef f():\n    from ..verdict import judge\n"
    )
    found = imports("report.table", path)
    assert found == {
        "assay.clock.statistics",
        "assay.report.units",
        "assay.rows",
        "torch.nn",
        "assay.verdict.judge",
    }
    assert "assay.verdict.judge" not in imports("report.table", path, top_level=True)
    assert allowed("report.table", "clock.statistics")
    assert not allowed("report.table", "clock.timing")
    assert not allowed("types", "errors")


PARENT_SIDE = [
    "cli",
    "commands.running",
    "commands.watch",
    "commands.starting",
    "commands.listing",
    "commands.caching",
    "commands.comparing",
    "commands.geometry",
    "commands.explaining",
    "commands.profiling",
    "commands.mnist_app",
    "commands.roofs",
    "commands.showing",
    "commands.tuning",
    "operators.native",
    "pipeline",
    "session",
    "describe",
    "api",
    "rows",
    "op",
    "machine",
    "target",
    "verdict.judge",
    "clock.schedule",
    "clock.statistics",
    "clock.plausible",
    "report.table",
    "inside.geometry.variant",
    "inside.reading.files",
    "ways",
    "processes.child",
    "processes.server",
    *(f"ways.{name}" for name in sorted({*importlib.import_module("assay.ways").FILES.values()})),
]
"""What the parent runs, and what the fork server runs before it imports anything on purpose."""
HEAVY = ("torch", "triton", "numba", "cuda.bindings", "cuda.core")


def python(code: str, *args: str) -> str:
    return subprocess.run(
        [sys.executable, *args, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_the_parent_imports_no_framework() -> None:
    """One process imports all of it, so that a torch anywhere is seen, and then looked for."""
    code = (
        "import importlib, sys\n"
        f"for name in {PARENT_SIDE!r}:\n"
        "    importlib.import_module('assay.' + name)\n"
        f"    heavy = [h for h in {HEAVY!r} if h in sys.modules]\n"
        "    if heavy:\n"
        "        print(name, 'brings', heavy)\n"
        "        break\n"
    )
    assert python(code) == ""


def fastest(*args: str) -> float:
    """Seconds of processor time of the best of 5 runs: wall time depends on what else runs."""
    best = float("inf")
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, *args], stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        used = after.children_user + after.children_system
        best = min(best, used - before.children_user - before.children_system)
        if best < 0.3:
            break
        time.sleep(0.2)
    return best


def test_importing_assay_is_quick() -> None:
    assert fastest("-c", "import assay; assay.Op, assay.grid, assay.Case") < 0.3


def test_help_is_quick_and_imports_no_framework() -> None:
    code = (
        "import sys; from assay.cli import main; sys.argv = ['assay', '--help']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"assert not [h for h in {HEAVY!r} if h in sys.modules]\n"
        "assert 'numpy' not in sys.modules\n"
    )
    assert "check" in python(code)
    assert fastest("-c", code) < 0.3


def test_files_are_small_and_begin_with_their_idea() -> None:
    long, mute = [], []
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.cu*"), *PACKAGE.rglob("*.cpp")]:
        name = str(path.relative_to(PACKAGE))
        lines = path.read_text().splitlines()
        if len(lines) > MOST_LINES and name not in LONGER:
            long.append(f"{name}: {len(lines)}")
        if not lines or not lines[0].startswith(('"""', "//", "/*")):
            mute.append(name)
    assert not long, f"split these, or give a reason in LONGER: {long}"
    assert not mute, f"the first line says what a file is: {mute}"
    assert all((PACKAGE / name).is_file() and reason for name, reason in LONGER.items())


def test_the_wheel_holds_every_source(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    kinds = (".py", ".cu", ".cpp", ".cuh", ".h", ".gz")
    wanted = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.suffix in kinds and "__pycache__" not in path.parts
    }
    assert any(name.endswith(".cuh") for name in wanted)
    assert any(name.endswith(".cu") for name in wanted)
    assert not wanted - packed
    zoo = {p for kind in ("wrong", "right") for p in (ROOT / "tests" / kind).glob("*.*")}
    kernels = {f"assay/selftest/kernels/{p.parent.name}/{p.name}" for p in zoo}
    assert kernels == {n for n in packed if n.startswith("assay/selftest/kernels/")}
    foreign = [n for n in packed if not n.startswith(("assay/", f"assay-{assay.__version__}."))]
    assert not foreign


def test_every_public_name_has_a_docstring_and_its_place_in_the_docs() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "architecture.md"]
    text = "\n".join(page.read_text() for page in pages if page.is_file())
    for name in assay.__all__:
        value = getattr(assay, name)
        assert inspect.getdoc(value), f"assay.{name} has no docstring"
        assert f"`{name}" in text or f"assay.{name}" in text, f"assay.{name} is in neither page"


def test_an_unknown_public_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(AttributeError, match=r"assay has no 'Opp'; it has .*Op"):
        assay.Opp  # noqa: B018
