"""Inductor's output code as plain Triton kernels and a function that launches them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import NotRun
from ...simt.adapters.inductor import Generated

DROPPED = (
    *("args.clear", "assert_size_stride", "assert_alignment", "torch.cuda.set_device"),
    *("get_raw_stream", "copy_if_misaligned"),
)
"""Checks, streams, and copies of misaligned inputs: @triton.jit compiles for their alignment."""
ALLOCATES = ("empty_strided_cuda",)
OF_INDUCTOR = ("triton_heuristics", "AutotuneHint", "ReductionHint", "TileHint", "DeviceProperties")
VIEW = "reinterpret_tensor"
WARPS = ("num_warps", "num_stages")


@dataclass(frozen=True)
class Written:
    """What a file is made of."""

    kernels: tuple[str, ...]
    """Each whole, with its decorator and a comment of what it computes."""
    names: tuple[str, ...]
    imports: tuple[str, ...]
    body: tuple[str, ...]
    """Lines of the function that launches them."""
    knobs: dict[str, int]
    """What the function takes besides its inputs, where there is one kernel."""
    views: bool
    """Whether it uses `view`."""


@dataclass
class _Work:
    launches: dict[str, Generated]
    kernels: dict[str, ast.Module]
    renamed: dict[str, str]
    device: str
    knobs: dict[str, int] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)


def rewritten(program: str, launches: Sequence[Generated], inputs: Sequence[str]) -> Written:
    """A program's kernels and the function that launches them.

    launches: as they were noted. inputs: names of the tensors that the function takes, in order.
    Raises NotRun for a program that does anything else, naming it.
    """
    tree = ast.parse(program)
    sources = dict(_sources(tree))
    if not sources:
        raise NotRun("Inductor writes no Triton kernel for it, so there is nothing to start from")
    call = _call(tree)
    names = _arguments(call)
    if len(names) != len(inputs):
        raise NotRun(
            f"Inductor's program takes {len(names)} tensors and the function {len(inputs)}: a "
            "tensor that the function brings itself can't be written to a file; make it an input"
        )
    first: dict[str, Generated] = {}
    for launch in launches:
        first.setdefault(launch.name, launch)
    kernels = {name: ast.parse(source) for name, source in sources.items()}
    work = _Work(first, kernels, dict(zip(names, inputs)), f"{inputs[0]}.device")
    if len(kernels) == 1:
        work.knobs = _constants(work, next(iter(kernels)))
    for statement in _flat(call.body):
        work.body.extend(_line(work, statement))
    comments = _comments(program)
    return Written(
        kernels=tuple(
            comments.get(name, "") + _text(source, kernels[name])
            for name, source in sources.items()
        ),
        names=tuple(sources),
        imports=_imports(sources, kernels),
        body=tuple(work.body),
        knobs=work.knobs,
        views=any(f"{VIEW}(" in line or "view(" in line for line in work.body),
    )


def _sources(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, source) of each kernel: `name = async_compile.triton('name', '''source''')`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and _called(node.value) == "async_compile.triton":
            name, source = node.value.args[:2]  # type: ignore[attr-defined]
            yield name.value, source.value


def _called(node: ast.AST) -> str:
    """`a.b` of a call `a.b(...)`; empty for anything else."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _call(tree: ast.Module) -> ast.FunctionDef:
    return next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "call")


def _arguments(call: ast.FunctionDef) -> list[str]:
    """Names of `a, b = args`."""
    for node in call.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == "args":
            target = node.targets[0]
            return [ast.unparse(n) for n in getattr(target, "elts", [target])]
    return []


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, those of `with` blocks in place of these."""
    for node in body:
        if isinstance(node, ast.With):
            yield from _flat(node.body)
        else:
            yield node


def _line(work: _Work, node: ast.stmt) -> list[str]:
    """The lines that a statement becomes. Raises NotRun for one that is not known."""
    value: Any = getattr(node, "value", None)
    called = _called(value) if value is not None else ""
    if isinstance(node, ast.Delete) or called in DROPPED:
        return []
    if isinstance(node, ast.Assign) and ast.unparse(value) == "args":
        return []
    if isinstance(node, ast.Return):
        parts = [_said(work, part) for part in value.elts]
        return [f"return {', '.join(parts)}"]
    if called.endswith(".run") and called[: -len(".run")] in work.kernels:
        return _launch(work, called[: -len(".run")], value)
    if isinstance(node, ast.Assign) and called in ALLOCATES:
        size, stride, dtype = (ast.unparse(a) for a in value.args)
        return [
            f"{ast.unparse(node.targets[0])} = torch.empty_strided("
            f"{size}, {stride}, dtype={dtype}, device={work.device})"
        ]
    plain = isinstance(node, ast.Assign) and (isinstance(value, ast.Name) or called == VIEW)
    if plain or (isinstance(node, ast.Expr) and called.endswith(".zero_")):
        return [_said(work, node)]
    raise NotRun(_refusal(node, called))


def _refusal(node: ast.stmt, called: str) -> str:
    library = re.match(r"extern_kernels\.(\w+)|(?:torch\.ops\.)?aten\.(\w+)", called)
    if library:
        name = library.group(1) or library.group(2)
        return (
            f"Inductor leaves {name} to a vendor library, so its code is not Inductor's to write "
            "out; take the part of the function without it"
        )
    return f"Inductor's program does more than launch kernels: {ast.unparse(node)}"


def _said(work: _Work, node: ast.AST) -> str:
    """Code with the inputs called as the function calls them."""
    text = ast.unparse(node)
    for old, new in work.renamed.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text.replace(f"{VIEW}(", "view(")


def _launch(work: _Work, name: str, call: ast.Call) -> list[str]:
    known = work.launches.get(name)
    if known is None:
        raise NotRun(f"{name} was not seen launched")
    args = [_said(work, argument) for argument in call.args]
    constants = _constants(work, name)
    given = {n: n if n in work.knobs else str(v) for n, v in constants.items()}
    for setting in WARPS:
        given.setdefault(setting, str(dict(known.compiled.settings)[setting]))
    grid = _grid(work, name, args, constants, known.grid)
    named = ", ".join(f"{n}={v}" for n, v in given.items())
    return [f"{name}[{grid}](", f"    {', '.join(args)},", f"    {named},", ")"]


def _constants(work: _Work, name: str) -> dict[str, int]:
    """Of a kernel's `tl.constexpr` parameters and its warps, what Inductor chose."""
    settings = dict(work.launches[name].compiled.settings) if name in work.launches else {}
    return {n: settings[n] for n in (*_parameters(work, name)[1], "num_warps") if n in settings}


def _parameters(work: _Work, name: str) -> tuple[list[str], list[str]]:
    """Names of a kernel's parameters: those that are passed, and the constants."""
    function = next(
        n for n in work.kernels[name].body if isinstance(n, ast.FunctionDef) and n.name == name
    )
    every = function.args.args
    constant = [a.arg for a in every if a.annotation and "constexpr" in ast.unparse(a.annotation)]
    return [a.arg for a in every if a.arg not in constant], constant


def _grid(
    work: _Work, name: str, args: list[str], constants: dict[str, int], seen: tuple[int, int, int]
) -> str:
    """`(triton.cdiv(4096, XBLOCK),)` where that is the grid that was seen, else its numbers."""
    passed = dict(zip(_parameters(work, name)[0], args))
    axes = [axis for axis in "xyz" if f"{axis}numel" in passed]
    parts, sizes = [], []
    for axis in axes:
        numel, block = passed[f"{axis}numel"], f"{axis.upper()}BLOCK"
        step = constants.get(block, 1)
        if not numel.isdecimal():
            return str(seen)
        sizes.append(-(-int(numel) // step))
        written = block if block in work.knobs else str(step)
        parts.append(
            f"triton.cdiv({numel}, {written})" if step != 1 or block in work.knobs else numel
        )
    if (*sizes, 1, 1, 1)[:3] != seen:
        return str(seen)
    return f"({', '.join(parts)},)"


def _text(source: str, tree: ast.Module) -> str:
    """A kernel and its helpers, with @triton.jit alone."""
    lines = source.splitlines()
    made = [
        "@triton.jit\n" + "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    ]
    return "\n\n\n".join(made)


def _imports(sources: dict[str, str], kernels: dict[str, ast.Module]) -> tuple[str, ...]:
    """Imports of the kernels' modules, of what the kernels use."""
    found: dict[str, None] = {}
    for name, tree in kernels.items():
        used = _text(sources[name], tree)
        for node in tree.body:
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            for alias in node.names:
                called = alias.asname or alias.name
                if called in OF_INDUCTOR or not re.search(rf"\b{re.escape(called)}\b", used):
                    continue
                renamed = f" as {alias.asname}" if alias.asname else ""
                start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
                found[f"{start}import {alias.name}{renamed}"] = None
    return tuple(line for line in found if line not in ("import triton",))


def _comments(program: str) -> dict[str, str]:
    """What Inductor says of each kernel: the operations that it does."""
    found, said = {}, ""
    for line in program.splitlines():
        if line.startswith("# Topologically Sorted Source Nodes"):
            said = line
        elif "= async_compile.triton(" in line:
            original = re.search(r"Original ATen: \[(.*)\]", said)
            if original:
                found[line.split(" = ")[0]] = f"# {original.group(1)}\n"
            said = ""
    return found
