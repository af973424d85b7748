"""Every lane-wise form gives what the ISA says, bit for bit or within the stated bound."""

from __future__ import annotations

from collections.abc import Callable

import conformance
import conversions
import floats
import formats
import integers
import mpmath
import pytest
from conformance import ROWS, Form, forms, operands
from judging import allowed, elements, near, same

from assay.simt.forms import Lane
from assay.simt.forms.floating import APPROXIMATE
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


@pytest.mark.parametrize("form", sorted(APPROXIMATE))
def test_a_result_beyond_its_bound_is_seen(form: str) -> None:
    f, _ = floats.element(form)
    half = formats.encode(f, formats.Value(0, 1, -1))
    operand = (half, half)[: 2 if form.startswith("div") else 1]
    right = floats.approximate(form)(*operand)  # type: ignore[misc]
    with mpmath.workprec(400):
        room = float(allowed(APPROXIMATE[form], f, right))
        size = 2.0**-400 * int(mpmath.floor(right * mpmath.mpf(2) ** 400))
    beyond = [size + 2.5 * room, size - 2.5 * room]
    inside = [size + 0.4 * room]
    for value, wrong in [(b, True) for b in beyond] + [(i, False) for i in inside]:
        n, d = abs(value).as_integer_ratio()
        bits = formats.encode(f, formats.Value(int(value < 0), n, 1 - d.bit_length()))
        assert bool(near(form, operand, bits)) == wrong, (form, value, right)


def test_other_bits_are_seen_and_any_nan_is_a_nan() -> None:
    assert same("f32", 0x7FC00000, 0xFFFFFFFF)
    assert not same("f32", 0, 0x80000000)
    assert not same("b32", 0x7FC00000, 0x7FFFFFFF)
    assert same("f16x2", 0x7E003C00, 0x7FFF3C00)
    assert not same("f16x2", 0x7E003C00, 0x7FFF3C01)


def test_operands_meet_their_edges() -> None:
    for kinds in {form.operands for row in ROWS for form in forms(row)}:
        given = operands(kinds)
        for row, kind in zip(given, kinds):
            assert kind in ("imm", "pred") or len(set(row.tolist())) > 60, kinds
    assert {0, 0x80000000, 0x7F800000, 0xFF800000, 1, 0x7FFFFF} <= set(
        operands(("f32",))[0].tolist()
    )
