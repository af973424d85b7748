"""An `extension` variant as a project of its own, which `pip install` builds."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import torch

from .. import cache, single
from ..errors import AssayError
from ..ways.extension import FLAGS, OPENMP, binding
from ..ways.extension import headers as binding_headers

PYPROJECT = """\
[build-system]
requires = ["setuptools", "torch"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "0.1.0"
description = "{title} as a torch extension"
dependencies = ["torch"]

[tool.setuptools]
packages = ["{name}"]
"""

SETUP = '''\
"""{doc}"""

from setuptools import setup
from torch.utils import cpp_extension

FLAGS = {flags}
{choice}
setup(ext_modules=[extension], cmdclass={{"build_ext": cpp_extension.BuildExtension}})
'''

DOC = {
    True: "Builds the extension: with CUDA where its toolkit is there, else for the CPU alone.",
    False: "Builds the extension.",
}

CPP = """
extension = cpp_extension.CppExtension(
    "{name}._C", ["csrc/binding.cpp"], include_dirs={include}, extra_compile_args=FLAGS + ["{omp}"]
)
"""

CUDA = """
if cpp_extension.CUDA_HOME is not None:
    flags = [*FLAGS, "-DWITH_CUDA"]
    extension = cpp_extension.CUDAExtension(
        "{name}._C",
        ["csrc/binding.cpp", "csrc/{cuda}"],
        include_dirs={include},
        extra_compile_args={{"cxx": [*flags, "{omp}"], "nvcc": [*flags, "-lineinfo"]}},
    )
else:
    extension = cpp_extension.CppExtension(
        "{name}._C",
        ["csrc/binding.cpp"],
        include_dirs={include},
        extra_compile_args=[*FLAGS, "{omp}"],
    )
"""

INIT = '''\
"""{title}."""

import torch  # noqa: F401 - loads the libraries that the extension is linked with

from ._C import {functions}

__all__ = {names}
'''

TEST = '''\
"""The extension is there, and does what {op} says on one case: {case}."""

from pathlib import Path

import torch

import {name}


{reference}


def test_it_is_right():
    case = torch.load(Path(__file__).parent / "case.pt", weights_only=True)
    {inputs} = case["inputs"]
    {outputs} = [torch.full_like(x, {fill}) for x in case["outputs"]]
{calls}
    expected = {expected}
    for got, want in zip([{outputs}], expected):
        torch.testing.assert_close(got, want.to(got.dtype), equal_nan=True)
'''

IMPORTS = '''\
"""The extension is there, with every function. What it computes is not checked here: {why}."""

import {name}


def test_it_is_there():
    assert all(callable(getattr({name}, function)) for function in {name}.__all__)
'''

README = """\
# {name}

{title}, exported from the variant `{label}`.

    pip install --no-build-isolation .
    python -m pytest tests

`csrc/binding.cpp` makes these callable from Python: {functions}.
`csrc/{source}` is the kernel; `setup.py` says how it is compiled.
With CUDA it is built for the GPU that is there, or for those in `TORCH_CUDA_ARCH_LIST`.
"""


class Calls:
    """Stands for the module: notes each call with its arguments."""

    def __init__(self) -> None:
        self.made: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args: self.made.append((name, args))


def write(one: single.Single, folder: Path) -> list[str]:
    """Writes the project into a folder; the names of its files. Raises AssayError."""
    placed, calls = single.place(one, "cpu"), Calls()
    one.variant.function(calls, *placed.outputs, *placed.inputs, **one.knobs)
    source = one.variant.source
    assert source is not None
    if not calls.made:
        raise AssayError(
            f"exporting {one.label}: its launcher calls nothing of {source.name} on "
            f"{one.case.label}; give another --case"
        )
    functions = sorted({name for name, _ in calls.made})
    name = f"{one.op.name}_extension"
    cuda = source.with_suffix(".cu") if source.with_suffix(".cu").is_file() else None
    title = f"The operator {one.op.name}"
    headers = _sources(one, [source, *([cuda] if cuda else [])], folder / "csrc")
    included = binding_headers(source.read_text())
    shared = {"name": name, "include": '["csrc"]', "omp": OPENMP}
    texts = {
        "pyproject.toml": PYPROJECT.format(name=name, title=title),
        "setup.py": SETUP.format(
            doc=DOC[cuda is not None],
            flags=_listed([*FLAGS, *one.variant.flags]),
            choice=(CUDA if cuda else CPP).format(cuda=cuda and cuda.name, **shared),
        ),
        "csrc/binding.cpp": f'{included}#include "{source.name}"\n\n{binding(functions)}',
        f"{name}/__init__.py": INIT.format(
            title=title, functions=", ".join(functions), names=_listed(functions)
        ),
        f"tests/test_{name}.py": _test(one, placed, calls, name, folder),
        "README.md": README.format(
            name=name,
            title=title,
            label=one.label,
            functions=", ".join(f"`{f}`" for f in functions),
            source=source.name,
        ),
    }
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return [*texts, *(f"csrc/{header}" for header in headers)]


def _listed(words: list[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _sources(one: single.Single, sources: list[Path], folder: Path) -> list[str]:
    """Copies the sources and each header that is the variant's own; their names."""
    places = [sources[0].parent, *(Path(f) for f in one.variant.include)]
    names = []
    for text in cache.source_digests(sources, places):
        path = Path(text)
        base = next((p for p in places if path.is_relative_to(p)), path.parent)
        name = path.relative_to(base)
        if str(name) == "binding.cpp":
            raise AssayError(f"exporting {one.label}: its source is called {name}; rename it")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / name)
        names.append(str(name))
    return names


def _test(one: single.Single, placed: single.Placed, calls: Calls, name: str, folder: Path) -> str:
    """A test against the reference where that stands on its own, else of the import alone."""
    why, reference = "", ""
    try:
        reference = _alone(one.op.reference)
        lines = _calls(one, placed, calls, name)
    except _NotSimple as reason:
        why = str(reason)
    if why:
        return IMPORTS.format(name=name, why=why)
    inputs = one.op.input_names(len(placed.inputs))
    outputs = [f"out{i}" for i in range(len(placed.outputs))]
    held = {"inputs": list(placed.inputs), "outputs": placed.outputs}
    (folder / "tests").mkdir(parents=True, exist_ok=True)
    torch.save(held, folder / "tests" / "case.pt")
    wide = ", ".join(f"{x}.double() if {x}.is_floating_point() else {x}" for x in inputs)
    call = f"{one.op.reference.__name__}({wide})"
    fills = all(x.is_floating_point() for x in placed.outputs)
    return TEST.format(
        op=one.op.name,
        case=one.case.label,
        name=name,
        reference=reference,
        inputs=f"{', '.join(inputs)}{',' * (len(inputs) == 1)}",
        outputs=f"{', '.join(outputs)}{',' * (len(outputs) == 1)}",
        fill='float("nan")' if fills else "-1",
        calls=lines,
        expected=call if len(outputs) > 1 else f"[{call}]",
    )


class _NotSimple(Exception):
    """Why a test can't be written."""


def _alone(reference: Any) -> str:
    """The source of a reference that needs torch alone. Raises _NotSimple."""
    code = getattr(reference, "__code__", None)
    if code is None or code.co_freevars or not reference.__name__.isidentifier():
        raise _NotSimple("its reference is no plain function")
    needed = [n for n in inspect.getclosurevars(reference).globals if n != "torch"]
    if needed:
        raise _NotSimple(f"its reference uses {', '.join(needed)}")
    return inspect.getsource(reference).rstrip()


def _calls(one: single.Single, placed: single.Placed, calls: Calls, name: str) -> str:
    """The launcher's calls as text. Raises _NotSimple."""
    if one.op.mutates or not all(isinstance(x, torch.Tensor) for x in placed.inputs):
        raise _NotSimple("it changes its inputs, or has some that are no tensors")
    known = [*zip(one.op.input_names(len(placed.inputs)), placed.inputs)]
    known += [(f"out{i}", out) for i, out in enumerate(placed.outputs)]
    lines = []
    for function, args in calls.made:
        words = []
        for value in args:
            if isinstance(value, (bool, int, float, str)):
                words.append(repr(value))
                continue
            same = [n for n, t in known if value is t]
            if not same:
                raise _NotSimple("its launcher passes more than inputs, outputs and numbers")
            words.append(same[0])
        lines.append(f"    {name}.{function}({', '.join(words)})")
    return "\n".join(lines)
