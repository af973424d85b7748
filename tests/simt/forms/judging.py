"""Whether a result is what it should be: the same bits, or near enough to the true value."""

from __future__ import annotations

import floats
import formats
import mpmath
import numpy as np

from assay.simt.forms.floating import APPROXIMATE, Bound


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


def room(form: str, bits: tuple[int, ...], got: int) -> float | None:
    """The error of a finite result as a part of what is allowed; None: nothing is promised."""
    f, _ = floats.element(form)
    bound, true = APPROXIMATE[form], floats.approximate(form)
    assert true is not None, f"{form} has no reference"
    result = formats.decode(f, got)
    if not promised(bound, f, bits[-1]) or result.special:
        return None
    want = true(*bits)
    if isinstance(want, formats.Value) or (result.zero and "ftz" in form.split(".")):
        return None
    with mpmath.workprec(400):
        return float(abs(floats.number(result) - want) / allowed(bound, f, want))
