"""TARGET: from what a user types, or passes, to the Ops behind it. Loading happens in children."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import linecache
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from .errors import AssayError, TargetError
from .op import Op, module_of, ops_in


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A target as data: children load it again from this."""

    text: str
    file: str = ""
    module: str = ""
    name: str = ""
    like: str = ""
    """Expression that says what the function computes, in place of an Op file."""
    inputs: tuple[str, ...] = ()
    """`x=normal(4096, 8192)` for each input of `like`."""
    fills: bool = False
    kernelbench: str = ""
    """File with Model, get_inputs and get_init_inputs."""


TOGETHER = {
    **dict.fromkeys(
        ("gelu", "gelu_tanh", "relu", "tanh", "sigmoid", "elu", "softplus", "swish"), "activations"
    ),
    "float_counters": "counters",
    "maxpool2d": "pooling",
    "avgpool2d": "pooling",
    "sigmoid_scale_bias": "scale_bias",
    "cross_entropy_both": "cross_entropy",
    "sum": "row_sum",
    "vecadd3d": "vecadd",
}
"""Operators that lie in another's folder, and that folder. The parent knows no other way: finding
out would import them, and torch. A test holds this to what the folders define."""
GROUPS = {"activations", "pooling"}
"""Folders that no operator is called after."""


class StopImport(BaseException):
    """Ends the import of a script at its own call of `assay.check` or `assay.bench`."""


def library() -> list[str]:
    """Names of the operators that Assay brings, without their gradients."""
    folders = {p.parent.name for p in (Path(__file__).parent / "ops").glob("*/__init__.py")}
    return sorted(folders - GROUPS | set(TOGETHER))


def parse(text: str, **more: Any) -> Target:
    """A target from `op`, `file.py`, `file.py:name` or `package.module:name`.

    Raises TargetError saying what there is instead.
    """
    place, _, name = text.partition(":") if not _windows_drive(text) else (text, "", "")
    if place.endswith(".py") or place.endswith(".ipynb"):
        path = Path(place)
        if place.endswith(".ipynb"):
            raise TargetError(f"{text}: a notebook is no target; call assay.check(op) in a cell")
        if not path.is_file():
            raise TargetError(f"{text}: there is no file {path} in {Path.cwd()}")
        return Target(text=text, file=str(path.resolve()), name=name, **more)
    forward = place.partition("_grad")[0]  # a gradient lies beside its forward
    if not name and forward in library():
        folder = TOGETHER.get(forward, forward)
        return Target(text=text, module=f"assay.ops.{folder}", name=place, **more)
    if name or "." in place:
        return Target(text=text, module=place, name=name, **more)
    raise TargetError(
        f"{text}: no operator of that name, and not a file; the operators are "
        f"{', '.join(library())}; a file is given as mykernels.py or mykernels.py:name"
    )


def _windows_drive(text: str) -> bool:
    return len(text) > 2 and text[1:3] == ":\\"


def from_object(value: Any, cells: Path) -> Target:
    """The target of an Op object. A notebook cell's source is written below `cells`."""
    if not isinstance(value, Op):
        raise TargetError(
            f"{value!r} is no target: pass an Op, or a string such as 'softmax' or 'file.py:name'"
        )
    made = inspect.unwrap(value.inputs)  # a gradient's inputs are made of its forward's
    file = getattr(getattr(made, "__code__", None), "co_filename", "")
    module = module_of(made)
    if module is not None and module.__name__.startswith("assay.ops."):
        return Target(text=value.name, module=module.__name__, name=value.name)
    if not Path(file).is_file():
        file = str(_write_cell(value, file, cells))
    return Target(text=value.name, file=str(Path(file).resolve()), name=value.name)


def _write_cell(op: Op, filename: str, cells: Path) -> Path:
    """The cell that defined an Op, as a file that children can import and that stays as record."""
    source = "".join(linecache.getlines(filename))
    if not source:
        raise TargetError(
            f"{op.name}: its source is nowhere to be found ({filename or 'built in'}); "
            "define it in a file or a notebook cell"
        )
    cells.mkdir(parents=True, exist_ok=True)
    path = cells / f"cell_{op.name}.py"
    path.write_text(source)
    return path


def load(target: Target) -> list[Op]:
    """The Ops of a target; imports the user's code, so only children call this.

    Raises TargetError if the code can't be imported or holds no such thing.
    """
    if target.kernelbench:
        from .adapt import kernelbench

        return [kernelbench.op(target, import_file)]
    module = import_file(target.file) if target.file else _import_module(target)
    if target.like:
        from .adapt import like

        return [like.op(target, _named(module, target))]
    found = ops_in(module)
    if not target.name:
        if not found:
            raise TargetError(
                f"{target.text}: it defines no assay.Op; define one, or name a function and say "
                "what it computes: --like 'torch.softmax(x, -1)' --input 'x=normal(4096, 8192)'"
            )
        return found
    for op in found:
        if op.name == target.name or getattr(module, target.name, None) is op:
            return [op]
    value = _named(module, target)
    if callable(value):
        raise TargetError(
            f"{target.text}: {target.name} is a function; say what it computes: "
            "--like 'torch.softmax(x, -1)' --input 'x=normal(4096, 8192)'"
        )
    raise TargetError(f"{target.text}: {target.name} is a {type(value).__name__}, not an Op")


def named(target: Target) -> Any:
    """The object that a target names; imports the user's code. Raises TargetError."""
    return _named(import_file(target.file) if target.file else _import_module(target), target)


def load_op(target: Target, name: str) -> Op:
    """The Op of that name among a target's."""
    for op in load(target):
        if op.name == name:
            return op
    raise TargetError(f"{target.text}: no operator {name!r} any more; was the file just edited?")


def _named(module: ModuleType, target: Target) -> Any:
    value: Any = module
    for part in target.name.split("."):
        if not hasattr(value, part):
            names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
            raise TargetError(
                f"{target.text}: {module.__name__} has no {target.name!r}; "
                f"it has {', '.join(names[:12]) or 'nothing callable'}"
            )
        value = getattr(value, part)
    return value


def _import_module(target: Target) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return _executed(target.module, importlib.util.find_spec(target.module))
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if target.module.startswith(missing):
            raise TargetError(
                f"{target.text}: Python finds no module {missing!r} from {Path.cwd()}; "
                "give the file instead (package/module.py:name), or install the package"
            ) from None
        raise _failed(target.text, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(target.text, error) from error


class _FromSource(SourceFileLoader):
    """Compiles the source, whatever bytecode lies beside it: see `processes.server`."""

    def path_stats(self, path: Any) -> Any:
        raise OSError("no bytecode of what is judged is believed")


def _executed(name: str, spec: ModuleSpec | None) -> ModuleType:
    """The module of a spec; one that ends its import by StopImport stays as far as it got."""
    if name in sys.modules:
        return sys.modules[name]
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    if type(spec.loader) is SourceFileLoader:
        spec.loader = _FromSource(spec.loader.name, spec.loader.path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    with contextlib.suppress(StopImport):
        spec.loader.exec_module(module)
    return module


def import_file(file: str) -> ModuleType:
    """Imports a file as what it is: a module of its package, else under its own name.

    So relative imports work in a package, and imports of neighbours work beside a script.
    """
    path = Path(file)
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    name = ".".join(parts)
    sys.path.insert(0, str(root))
    if name in sys.modules and len(parts) == 1:
        name = f"_assay_target_{path.stem}"  # a file called types.py must not be `types`
    try:
        if len(parts) > 1:
            return _executed(name, importlib.util.find_spec(name))
        return _executed(name, importlib.util.spec_from_file_location(name, path))
    except (Exception, SystemExit) as error:
        raise _failed(file, error) from error


def _failed(what: str, error: BaseException) -> AssayError:
    """An exception of the user's own code at import, with the line it came from."""
    if isinstance(error, AssayError):
        return error
    where = ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}: "
    else:
        trace, last = error.__traceback__, None
        while trace is not None:
            if "importlib" not in trace.tb_frame.f_code.co_filename:
                last = trace
            trace = trace.tb_next
        if last is not None:
            where = f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}: "
    text = str(error).strip() or "(no message)"
    return TargetError(f"importing {what}: {where}{type(error).__name__}: {text}")
