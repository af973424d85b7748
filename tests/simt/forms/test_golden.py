"""The approximate forms against what a card gave once (benchmarks/simt_forms.py wrote it)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import conformance
import floats
import formats
import mpmath
import numpy as np
import pytest
from conformance import ROWS, Form, forms
from judging import allowed, elements, near, promised

from assay.simt.forms.floating import APPROXIMATE
from assay.simt.forms.table import SIZES

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "approximate.json").read_text()
)["forms"]


def words(text: str, kind: str) -> list[int]:
    digits = 2 * SIZES[kind]
    return [int(text[i : i + digits], 16) for i in range(0, len(text), digits)]


def apart(form: str, bits: tuple[int, ...], card: int, ours: int) -> str:
    """What is wrong between a card's result and ours: they are further apart than two bounds."""
    f, _ = floats.element(form)
    true = floats.approximate(form)
    assert true is not None
    if not promised(APPROXIMATE[form], f, bits[-1]):
        return ""
    want, a, b = true(*bits), formats.decode(f, card), formats.decode(f, ours)
    text = f"{form} {[hex(x) for x in bits]}: card {card:#x}, ours {ours:#x}"
    if a.special or b.special or isinstance(want, formats.Value):
        return "" if card == ours or a.special == b.special == "nan" else text
    with mpmath.workprec(400):
        distance = abs(floats.number(a) - floats.number(b))
        return "" if distance <= 2 * allowed(APPROXIMATE[form], f, want) else text


@pytest.fixture(scope="module")
def by_name() -> dict[str, Form]:
    return {form.name: form for row in ROWS for form in forms(row) if form.name in APPROXIMATE}


def test_every_approximate_form_was_recorded() -> None:
    assert set(RECORDED) == set(APPROXIMATE)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_ours_is_as_near_to_the_card_as_both_are_to_the_truth(
    name: str, by_name: dict[str, Form]
) -> None:
    form, record = by_name[name], RECORDED[name]
    given = np.array(
        [words(t, kind) for t, kind in zip(record["operands"], form.operands)], np.uint64
    )
    card = np.array(words(record["results"], form.result), np.uint64)
    ours, _ = conformance.compiled().run(form, given)
    wrong = []
    for (bits, theirs), (_, mine) in zip(
        elements(name, given, card), elements(name, given, ours), strict=True
    ):
        wrong += [
            text for text in (near(name, bits, theirs), apart(name, bits, theirs, mine)) if text
        ]
    assert not wrong, "\n".join(wrong[:20])
