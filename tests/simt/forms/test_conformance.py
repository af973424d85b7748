"""Every lane-wise form gives what the ISA says, bit for bit or within the stated bound."""

from __future__ import annotations

from collections.abc import Callable

import conformance
import conversions
import floats
import formats
import integers
import mpmath
import numpy as np
import pytest
from conformance import ROWS, Form, forms, operands

from assay.simt.forms import Lane
from assay.simt.forms.floating import APPROXIMATE, Bound
from assay.simt.forms.table import SIZES, options

REFERENCES: tuple[Callable[[str], Callable[..., int | tuple[int, int]] | None], ...] = (
    conversions.reference,
    floats.reference,
    integers.reference,
)


def reference(form: str) -> Callable[..., int | tuple[int, int]] | None:
    return next((found for make in REFERENCES if (found := make(form))), None)


def name(row: Lane) -> str:
    return row.pattern


def same(kind: str, got: int, want: int) -> bool:
    """Equal bits, or both a NaN of a floating-point type."""
    if got == want:
        return True
    if kind.endswith("x2") and kind.removesuffix("x2") in formats.FORMATS:
        one = kind.removesuffix("x2")
        return all(same(one, got >> s & 0xFFFF, want >> s & 0xFFFF) for s in (0, 16))
    f = formats.FORMATS.get(kind)
    return (
        f is not None and "nan" == formats.decode(f, got).special == formats.decode(f, want).special
    )


def exact(form: Form) -> list[str]:
    """What is wrong with a form, lane by lane."""
    given = operands(form.operands)
    if form.immediate is not None:
        given = given.copy()
        given[form.operands.index("imm")] = form.immediate
    got, second = conformance.compiled().run(form, given)
    want = reference(form.name)
    assert want is not None, f"{form.name} has no reference"
    mask = (1 << 8 * SIZES[form.result]) - 1
    wrong = []
    for lane, bits in enumerate(zip(*given.tolist())):
        expected = want(*bits)
        first, other = expected if isinstance(expected, tuple) else (expected, None)
        if form.second:
            assert other is not None, f"the reference of {form.name} has one result"
        if not same(form.result, int(got[lane]), first & mask):
            wrong.append(
                f"{form.label} {[hex(b) for b in bits]}: {got[lane]:#x}, not {first & mask:#x}"
            )
        if form.second and int(second[lane]) != other:
            wrong.append(
                f"{form.label} {[hex(b) for b in bits]}: second {second[lane]}, not {other}"
            )
    return wrong


def allowed(bound: Bound, f: formats.Format, true: mpmath.mpf) -> mpmath.mpf:
    """How far a result may be from the true value: the bound, and the last place of a subnormal."""
    size = abs(true)
    exponent = max(int(mpmath.floor(mpmath.log(size, 2))), f.least) if size else f.least
    place = mpmath.mpf(2) ** (exponent - f.precision + 1)
    unit = bound.ulp * place
    least = mpmath.mpf(2) ** (f.least - f.precision + 1)
    rounding = place / 2 if f.width == 16 else 0
    return max(unit, bound.relative * size, mpmath.mpf(bound.absolute), least) + rounding


def promised(bound: Bound, f: formats.Format, bits: int) -> bool:
    value = formats.decode(f, bits)
    if value.special or value.zero:
        return True
    return bound.least <= float(abs(value.fraction)) <= bound.most


def near(form: str, bits: tuple[int, ...], got: int) -> str:
    """What is wrong with an approximate result, or nothing."""
    f, _ = floats.element(form)
    bound, true = APPROXIMATE[form], floats.approximate(form)
    assert true is not None, f"{form} has no reference"
    if not promised(bound, f, bits[-1]):
        return ""
    want = true(*bits)
    result = formats.decode(f, got)
    text = f"{form} {[hex(b) for b in bits]}: {got:#x}, not {want}"
    if isinstance(want, formats.Value):
        if want.special == "nan":
            return "" if result.special == "nan" else text
        return "" if got == formats.encode(f, want) else text
    if result.special == "nan":
        return text
    with mpmath.workprec(400):
        ftz = "ftz" in form.split(".")
        gross = f is formats.F64 and ftz
        smallest = mpmath.mpf(2) ** f.least
        if (ftz or gross) and abs(want) < smallest * (1 + mpmath.mpf(2) ** -20) and result.zero:
            return ""
        largest = (2 - mpmath.mpf(2) ** (1 - f.precision)) * mpmath.mpf(2) ** (1 - f.least)
        room = allowed(bound, f, want)
        if result.special == "inf":
            return "" if abs(want) + room >= largest and result.sign == (want < 0) else text
        error = abs(floats.number(result) - want)
        return "" if error <= room else f"{text}, off {mpmath.nstr(error / room, 5)} of what it may"


def elements(form: str, given: np.ndarray, got: np.ndarray) -> list[tuple[tuple[int, ...], int]]:
    """Operands and results, halves of words taken apart."""
    _, double = floats.element(form)
    rows = []
    for lane, result in enumerate(got.tolist()):
        bits = tuple(int(row[lane]) for row in given)
        for shift in (0, 16) if double else (0,):
            mask = 0xFFFF if double else ~0
            rows.append((tuple(b >> shift & mask for b in bits), result >> shift & mask))
    return rows


def approximate(form: Form) -> list[str]:
    given = operands(form.operands)
    got, _ = conformance.compiled().run(form, given)
    return [w for bits, r in elements(form.name, given, got) if (w := near(form.name, bits, r))]


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_a_form_gives_what_the_isa_says(row: Lane) -> None:
    wrong: list[str] = []
    for form in forms(row):
        wrong += approximate(form) if form.name in APPROXIMATE else exact(form)
    assert not wrong, "\n".join([f"{len(wrong)} lanes", *wrong[:20]])


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_every_form_has_a_reference(row: Lane) -> None:
    for form in options(row.pattern):
        if form in APPROXIMATE:
            assert floats.approximate(form), form
        else:
            assert reference(form), form


def test_every_stated_bound_is_of_a_form() -> None:
    known = {form for row in ROWS for form in options(row.pattern)}
    assert set(APPROXIMATE) <= known
    assert {form for form in known if ".approx" in form or ".full" in form} == set(APPROXIMATE)


def test_no_form_is_in_two_rows() -> None:
    seen: dict[str, str] = {}
    for row in ROWS:
        for form in options(row.pattern):
            assert form not in seen, f"{form}: {row.pattern} and {seen.get(form)}"
            seen[form] = row.pattern
