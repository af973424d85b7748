"""Op and Variant: what is computed, and the ways of writing it. Both hold functions: no data.

Nothing here imports torch: declaring an Op costs nothing.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from . import cache
from .cases import axis, cases_of, value_of
from .errors import OpError
from .shapes import fault
from .types import Case, Scalar

if TYPE_CHECKING:
    from .gradient import Gradient

F = TypeVar("F", bound=Callable[..., Any])

WAYS = (
    "eager",
    "compiled",
    "python",
    "triton",
    "cuda",
    "extension",
    "numba",
    "cpp",
    "library",
)
"""The ways of writing a kernel; `ways/` has a file for each that needs one."""

KINDS = (
    "size",
    *("nan", "inf", "masked", "zeros", "equal", "wide", "huge", "tiny", "denormal"),
    *("transposed", "stepped", "expanded", "broadcast", "far", "offset", "channels_last"),
)
"""The kinds of hostile inputs: other sizes, values, layouts. `hostile.py` says what each does."""


def way_of(variant: str) -> str:
    """The way in a variant's name, knobs after it or not. Raises OpError if there is none such."""
    way = variant.split()[0].split("/")[0]
    if way not in WAYS:
        raise OpError(f"-k {variant}: no way called {way!r}; the ways are {', '.join(WAYS)}")
    return way


def _words(given: str | Iterable[str]) -> tuple[str, ...]:
    """One string is one word, not its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


@dataclass(frozen=True, eq=False)
class Variant:
    """One way of writing an Op. Made by `@op.variant` or `@op.launcher`."""

    name: str
    way: str
    function: Callable[..., Any]
    fills: bool
    """True if the function fills outputs that it is given, False if it returns them."""
    source: Path | None = None
    knobs: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    when: Callable[..., bool | str] | None = None
    precision: str = ""
    arch: str = ""
    flags: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    layouts: str = "contiguous"

    def configurations(self) -> list[dict[str, Scalar]]:
        """Every combination of knobs; the first is the default."""
        return [dict(zip(self.knobs, combo)) for combo in itertools.product(*self.knobs.values())]


@dataclass(frozen=True, eq=False)
class Op:
    """What is computed, independent of how.

    reference: plain PyTorch over the inputs; run in float64 it is the truth, run in the case's
        dtype it is the variant `eager`. With `mutates` it returns first what those inputs must
        hold afterwards, in order, then the other outputs.
    inputs: `inputs(make, **case)` gives the tuple of inputs; `make` is an `assay.inputs.Make`.
    cases: what `grid(...)` returns, or an iterable of dicts of case values.
    flops, bytes: functions of the case values (any subset of them by name) giving the work of one
        call. Default bytes: every input read once and every output written once.
    outputs: function of the case values giving `[(shape, dtype name), ...]`; default: what the
        reference gives under fake tensors, contiguous.
    mutates: names of inputs (parameters of `reference`) that are changed in place.
    deterministic: True if runs on equal inputs must agree bit for bit.
    supports: function of the case values giving True, or the reason why a case is not promised.
    accept: `accept(outputs, inputs)` giving True or a reason, for results without one right value.
    limit: a limit on |error| set by you, instead of what rounding allows; printed as such.
    excludes: hostile inputs that the Op does not promise to answer: kinds such as `nan`, `inf`,
        `size`, or those of one input, `x:denormal`; see `assay.hostile`.
    shapes: of inputs, by name, what shapes its variants take: `{"x": "... n", "w": "n"}`; see
        `assay.shapes`. Its torch operator refuses others, also what the reference broadcasts.
    of: of a gradient, what joins it to its forward; `gradient` sets it.

    Raises OpError for a declaration that can't work.
    """

    name: str
    reference: Callable[..., Any]
    inputs: Callable[..., tuple[Any, ...]]
    cases: Sequence[Any] = field(kw_only=True)  # of Case, once made
    flops: Callable[..., float] | None = field(default=None, kw_only=True)
    bytes: Callable[..., float] | None = field(default=None, kw_only=True)
    outputs: Callable[..., Sequence[tuple[Sequence[int], str]]] | None = field(
        default=None, kw_only=True
    )
    mutates: tuple[str, ...] = field(default=(), kw_only=True)
    deterministic: bool = field(default=False, kw_only=True)
    supports: Callable[..., bool | str] | None = field(default=None, kw_only=True)
    accept: Callable[..., bool | str] | None = field(default=None, kw_only=True)
    limit: float | None = field(default=None, kw_only=True)
    excludes: tuple[str, ...] = field(default=(), kw_only=True)
    shapes: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    of: Gradient | None = field(default=None, kw_only=True, repr=False)
    variants: list[Variant] = field(default_factory=list, init=False, repr=False)
    gradients: list[Op] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        plain = isinstance(self.name, str) and self.name.isascii()
        if not plain or not self.name.replace("_", "").isalnum():
            raise OpError(f"Op({self.name!r}): a name is letters, digits and underscores")
        for role in ("reference", "inputs"):
            if not callable(getattr(self, role)):
                raise OpError(f"{self.name}: {role} is {getattr(self, role)!r}, not a function")
        object.__setattr__(self, "cases", cases_of(self.name, self.cases))
        mutates = _words(self.mutates)
        unknown = [name for name in mutates if name not in parameters(self.reference)]
        if unknown:
            raise OpError(
                f"{self.name}: mutates names {unknown[0]!r}, and the reference takes "
                f"{', '.join(parameters(self.reference))}"
            )
        object.__setattr__(self, "mutates", mutates)
        object.__setattr__(self, "excludes", _words(self.excludes))
        for said in self.excludes:
            name, _, kind = said.rpartition(":")
            if kind not in KINDS or (name and name not in parameters(self.reference)):
                raise OpError(
                    f"{self.name}: excludes names {said!r}; say a kind ({', '.join(KINDS)}), or "
                    "that of one input, such as 'x:nan'"
                )
        if wrong := fault(self.shapes, parameters(self.reference)):
            raise OpError(f"{self.name}: {wrong}")
        self._add(Variant("eager", "eager", self.reference, fills=False, layouts="any"))
        self._add(Variant("compiled", "compiled", self.reference, fills=False, layouts="any"))

    def variant(self, name: str, **declared: Any) -> Callable[[F], F]:
        """Marks a function that takes the inputs and returns the output (or a tuple of them)."""
        return self._mark(name, fills=False, **declared)

    def launcher(self, name: str, source: str | None = None, **declared: Any) -> Callable[[F], F]:
        """Marks a function that fills the outputs it is given: `launch(out, x)`.

        With a `source` (a `.cu` or `.cpp` beside the calling file, or the source's own text, known
        by its line breaks) the built source comes first: `launch(k, out, x)`.
        """
        return self._mark(name, fills=True, source=source, **declared)

    def gradient(
        self,
        reference: Callable[..., Any],
        *,
        saves: str | Iterable[str] = (),
        wrt: str | Iterable[str],
        name: str = "",
        cases: Iterable[Any] | None = None,
        excludes: str | Iterable[str] = (),
        **declared: Any,
    ) -> Op:
        """The Op of this one's gradient, to which variants are added as to any other.

        reference: the formula. It takes the gradient of each floating-point output, then the saved
            values, and returns the gradient of each input that `wrt` names, in that order.
        saves: names of inputs, or of outputs: `output1`, or any name where there is only one.
        name: default `<name>_grad`. cases: default those of this Op in floating point.

        Its inputs are made of this Op's: saved outputs are rounded to the case's dtype, as they
        are in a model; output gradients are random. That the formula is the gradient is checked
        once a case, in float64, against autograd of this Op's reference.

        Raises OpError for names that are not there.
        """
        from .gradient import gradient_of

        made = gradient_of(self, reference, saves, wrt, name, cases, excludes, **declared)
        self.gradients.append(made)
        return made

    def _mark(
        self, name: str, *, fills: bool, source: str | None = None, **declared: Any
    ) -> Callable[[F], F]:
        return lambda function: self._declare(name, function, fills, source, declared)

    def _declare(
        self,
        name: str,
        function: F,
        fills: bool,
        source: str | None,
        declared: dict[str, Any],
    ) -> F:
        way = name.split("/")[0]
        if way not in WAYS:
            raise OpError(f"{self.name}: no way called {way!r}; the ways are {', '.join(WAYS)}")
        allowed = {"knobs", "when", "precision", "arch", "flags", "include", "layouts"}
        unknown = sorted(set(declared) - allowed)
        if unknown:
            raise OpError(
                f"{self.name}: variant {name!r} declares {unknown[0]!r}; "
                f"known are {', '.join(sorted(allowed))}"
            )
        where = f"{self.name}: variant {name!r}"
        layouts = declared.get("layouts", "contiguous")
        if layouts not in ("contiguous", "any"):
            raise OpError(f"{where}: layouts={layouts!r}; say 'contiguous' or 'any'")
        knobs = _knobs(where, function, declared.get("knobs") or {})
        self._add(
            Variant(
                name,
                way,
                function,
                fills,
                _source(self.name, name, function, source),
                knobs,
                declared.get("when"),
                declared.get("precision", ""),
                declared.get("arch", ""),
                _words(declared.get("flags", ())),
                _include(function, source, _words(declared.get("include", ()))),
                layouts,
            )
        )
        return function

    def _add(self, variant: Variant) -> None:
        known = next((v for v in self.variants if v.name == variant.name), None)
        if known and known.function is self.reference:
            self.variants.remove(known)  # a user's own `eager` takes the derived one's place
        elif known:
            raise OpError(f"{self.name}: two variants are called {variant.name!r}; rename one")
        self.variants.append(variant)

    def find(self, name: str) -> Variant:
        """The variant of that name. Raises OpError listing those there are."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        names = ", ".join(v.name for v in self.variants)
        raise OpError(f"{self.name}: no variant {name!r}; there are {names}")

    def input_names(self, count: int) -> list[str]:
        """Names of `count` inputs: the reference's parameters, else `input0`, ..."""
        names = parameters(self.reference)
        return [names[i] if i < len(names) else f"input{i}" for i in range(count)]


def _source(op: str, name: str, function: Callable[..., Any], source: str | None) -> Path | None:
    if source is None:
        return None
    if "\n" in source:
        way = name.split("/")[0]
        return cache.keep_source(way, source, ".cu" if way == "cuda" else ".cpp")
    path = _beside(function, source)
    if not path.is_file():
        raise OpError(f"{op}: variant {name!r} names the source {source!r}; {path} is no file")
    return path


def _include(
    function: Callable[..., Any], source: str | None, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Folders of headers; a text's headers lie beside the file that holds it, as a file's do."""
    text = source is not None and "\n" in source
    return tuple(str(_beside(function, f)) for f in (*given, *(["."] if text else [])))


def _beside(function: Callable[..., Any], path: str) -> Path:
    """A relative path is meant from the file that holds the function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return Path(code.co_filename).parent / path if code else Path(path).absolute()


def _knobs(
    where: str, function: Callable[..., Any], given: Mapping[str, Any]
) -> dict[str, tuple[Scalar, ...]]:
    """The knobs with their values. Raises OpError for one that the function does not take."""
    try:
        signature = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in does not tell
        signature = None
    knobs = {}
    for name, values in given.items():
        listed = axis(f"{where}: knob {name}", values)
        knobs[name] = tuple(value_of(f"{where}: knob", name, value) for value in listed)
        if signature is None or any(p.kind is p.VAR_KEYWORD for p in signature):
            continue
        if all(p.name != name for p in signature):
            names = ", ".join(p.name for p in signature)
            raise OpError(f"{where} has the knob {name!r}, and its function takes ({names})")
    return knobs


def parameters(function: Callable[..., Any]) -> list[str]:
    """Names of a function's positional parameters; empty for built-ins that do not tell."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in signature.parameters.values() if p.kind in kinds]


def call_with(function: Callable[..., Any], values: Mapping[str, Any], what: str) -> Any:
    """Calls a function of case values with those it names. Raises OpError if it names others."""
    signature = inspect.signature(function)
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values())
    if takes_all:
        return function(**values)
    wanted = [p for p in signature.parameters.values() if p.kind is not p.VAR_POSITIONAL]
    missing = [p.name for p in wanted if p.name not in values and p.default is p.empty]
    if missing:
        raise OpError(
            f"{what} takes {missing[0]!r}, which the case does not have; "
            f"it has {', '.join(values) or 'no values'}"
        )
    return function(**{p.name: values[p.name] for p in wanted if p.name in values})


def make_inputs(op: Op, make: Any, case: Case) -> tuple[Any, ...]:
    """The inputs of a case. Raises OpError if `inputs` does not take what the case holds."""
    signature = inspect.signature(op.inputs)
    names = list(signature.parameters)[1:]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    unknown = [name for name in case.values if name not in names]
    if unknown and not takes_all:
        raise OpError(
            f"{op.name}: the cases have {unknown[0]!r}, and inputs(make, {', '.join(names)}) "
            "does not take it; add the parameter or drop it from the cases"
        )
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    for p in list(signature.parameters.values())[1:]:
        if p.kind not in variadic and p.default is p.empty and p.name not in case.values:
            raise OpError(
                f"{op.name}: inputs takes {p.name!r}, and the case {case.label!r} has no such "
                "value; add it to the cases or give the parameter a default"
            )
    made = op.inputs(make, **case.values)
    if not isinstance(made, tuple):
        raise OpError(
            f"{op.name}: inputs(...) returned a {type(made).__name__}; return a tuple, "
            "`return (x,)` for one input"
        )
    return made


def supported(op: Op, case: Case) -> str:
    """Empty if the Op promises this case, else the reason why it does not."""
    if op.supports is None:
        return ""
    answer = call_with(op.supports, case.values, f"{op.name}: supports")
    if answer is True:
        return ""
    return answer if isinstance(answer, str) and answer else "the Op does not promise this case"


def ops_in(module: Any) -> list[Op]:
    """The Ops that a module defines, in the order of their definition."""
    return list(dict.fromkeys(value for value in vars(module).values() if isinstance(value, Op)))


def cost(op: Op, what: str, case: Case) -> int | None:
    """`bytes` or `flops` of one call, as declared; None if the Op does not say.

    Raises OpError if it is not a number of at least 0 that fits 64 bits.
    """
    function = {"bytes": op.bytes, "flops": op.flops}[what]
    if function is None:
        return None
    value = call_with(function, case.values, f"{op.name}: {what}")
    if not isinstance(value, (int, float)) or not 0 <= value < 2**63:
        raise OpError(f"{op.name}: {what}({case.label}) gave {value!r}; give a count >= 0")
    return int(value)


def module_of(function: Callable[..., Any]) -> Any:
    """The module that a function was defined in, or None."""
    return sys.modules.get(getattr(function, "__module__", ""))
