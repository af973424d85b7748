"""Cases from what people write: `grid(...)`, lists of dicts, `n=4096 dtype=bf16`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import OpError
from .types import Case, Scalar

ALIASES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "long": "int64",
}
"""Accepted for torch's names of dtypes."""


def grid(**axes: Iterable[Scalar]) -> tuple[Case, ...]:
    """Every combination of the values of each name, as Cases; the first names vary slowest."""
    lists = {name: axis(f"grid({name}=...)", values) for name, values in axes.items()}
    return tuple(case_of(dict(zip(lists, combo))) for combo in itertools.product(*lists.values()))


def axis(what: str, values: Iterable[Scalar] | Scalar) -> list[Scalar]:
    if isinstance(values, (str, int, float, bool)):
        return [values]
    if not isinstance(values, Iterable):
        raise OpError(f"{what}: {values!r} is no value and no list of values")
    listed = list(values)
    if not listed:
        raise OpError(f"{what}: no value given; at least one is needed")
    return listed


def case_of(values: Mapping[str, Any], seed: int = 0) -> Case:
    plain = {name: value_of("case value", name, value) for name, value in values.items()}
    named = {n: ALIASES.get(str(v), v) if "dtype" in n else v for n, v in plain.items()}
    return Case(named, seed)


def value_of(what: str, name: str, value: Any) -> Scalar:
    """A value of a case or a knob as rows can hold it. Raises OpError naming it."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise OpError(f"{what} {name}={value!r}: {name!r} is no name that a function can take")
    if not isinstance(value, (bool, int, float, str)):
        raise OpError(
            f"{what} {name}={value!r} is a {type(value).__name__}; "
            "it must be int, float, bool or str (a dtype by its name, e.g. 'float32')"
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OpError(f"{what} {name}={value} does not fit 64 bits")
    # NumPy's float64 is a float, and an IntEnum an int: rows hold the plain kind.
    kind = next(k for k in (bool, int, float, str) if isinstance(value, k))
    return value if type(value) is kind else kind(value)


def cases_of(op: str, given: Any) -> tuple[Case, ...]:
    if isinstance(given, (Case, Mapping, str)) or not isinstance(given, Iterable):
        raise OpError(f"{op}: cases={given!r}: give a list of cases, e.g. assay.grid(n=[1, 1000])")
    cases: dict[str, Case] = {}
    for case in given:
        if not isinstance(case, (Case, Mapping)):
            raise OpError(f"{op}: case {case!r} is no dict of values, e.g. dict(n=1000)")
        made = case_of(case.values, case.seed) if isinstance(case, Case) else case_of(case)
        if cases.setdefault(repr(made), made) is not made:
            raise OpError(f"{op}: case {made.label!r} is given twice; drop one")
    if not cases:
        raise OpError(f"{op}: no cases; give e.g. cases=assay.grid(n=[1, 1000])")
    return tuple(cases.values())


def parse_values(text: str) -> dict[str, Scalar]:
    """`n=4096 dtype=float32` as case values. Raises OpError for anything that is not name=value."""
    values: dict[str, Scalar] = {}
    for part in text.replace(",", " ").split():
        name, equals, value = part.partition("=")
        if not equals or not name.isidentifier():
            raise OpError(f"reading {text!r}: {part!r} is not name=value, e.g. n=4096 dtype=bf16")
        values[name] = scalar(value)
    return case_of(values).values


def scalar(text: str) -> Scalar:
    """A value typed on a command line: int, float or bool where it reads as one, else str."""
    if text in ("True", "true", "False", "false"):
        return text in ("True", "true")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    shift = text.split("<<")
    if len(shift) == 2 and all(part.isdecimal() for part in shift) and int(shift[1]) < 64:
        return int(shift[0]) << int(shift[1])
    return text


RANGE = re.compile(r"(-?\d+):(-?\d+)(?::(-?\d+))?")
MOST = 10_000
"""Cases that ranges may make: more were hardly meant."""


def is_range(value: Any) -> bool:
    """Whether it is `first:last:step`."""
    return isinstance(value, str) and RANGE.fullmatch(value) is not None


def expanded(values: Mapping[str, Scalar]) -> list[dict[str, Scalar]]:
    """Every combination of what ranges stand for: `n=256:1024:128` is 256, 384, ... 1024.

    The last is among them if steps meet it; without a step it is 1. The first names vary slowest.
    Raises OpError for a range of no number, or of too many.
    """
    lists = [_range(n, v) if is_range(v) else [v] for n, v in values.items()]
    count = 1
    for each in lists:
        count *= len(each)
    if count > MOST:
        raise OpError(f"{_text(values)} makes {count:,} cases, at most {MOST:,}; take larger steps")
    return [dict(zip(values, combo)) for combo in itertools.product(*lists)]


def _range(name: str, value: Any) -> Any:
    found = RANGE.fullmatch(value)
    assert found is not None
    first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
    if step < 1 or last < first:
        raise OpError(
            f"{name}={value}: a range is first:last:step, upwards, e.g. {name}=256:1024:128"
        )
    return range(first, last + 1, step)


def _text(values: Mapping[str, Scalar]) -> str:
    return " ".join(f"{n}={v}" for n, v in values.items())
