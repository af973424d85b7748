"""The roofline of explanations: ceilings, points, a golden picture, contrast in light and dark."""

from __future__ import annotations

import dataclasses
import json
import re
import xml.etree.ElementTree
from pathlib import Path

import pytest
from test_explain import N, changed, counts, machine, roofs, row, whole

from assay.commands import explaining
from assay.errors import AssayError
from assay.explain import Explanation, explain
from assay.explain.cards import Ceiling, of_architecture, of_machine
from assay.explain.picture import DARK, LIGHT, svg
from assay.explain.recorded import of_rows
from assay.explain.roofline import Point, Roofline, point, roofline
from assay.rows import encode
from assay.types import Roof

GOLDEN = Path(__file__).parent / "golden" / "roofline.svg"
MEASURED = {"seconds": 60e-6, "method": "cupti, cold L2"}


def explained(label: str = "cuda", **fields: object) -> Explanation:
    return explain(changed(label=label, precision="float32", **fields))


def golden() -> Roofline:
    return roofline(
        [
            explained("cuda/plain", flops=N, **MEASURED),
            explained("cuda/slow", flops=64 * N, counts=counts(whole(32))),
            explained("cuda/copy", flops=0),
        ]
    )


def test_a_point_is_the_ops_flops_over_time_and_bytes() -> None:
    made = point(explained(flops=N, **MEASURED))
    assert isinstance(made, Point)
    assert made.intensity == pytest.approx(N / (8 * N))
    assert made.rate == pytest.approx(N / 60e-6)
    assert made.measured
    assert (made.limit, made.bound) == (pytest.approx(3.35e12 / 8), "DRAM")
    assert made.asked == pytest.approx(made.intensity)  # all that is asked for must move


def test_what_is_asked_in_vain_is_a_second_point_further_left() -> None:
    made = point(explained(flops=64 * N, counts=counts(whole(32))))
    assert isinstance(made, Point)
    assert not made.measured
    assert made.asked == pytest.approx(made.intensity * (4 + 4) / (32 + 4))


def test_arithmetic_is_the_ceiling_beyond_the_ridge() -> None:
    made = point(explained(flops=8 * N * 40, **MEASURED))
    assert isinstance(made, Point)
    peak = 256 * 132 * 1.98e9
    assert peak / 3.35e12 < 40
    assert (made.limit, made.bound) == (pytest.approx(peak), "float32 FMA")


def test_a_precision_has_the_ceiling_of_its_own_unit() -> None:
    facts = changed(flops=8 * N * 1000, precision="bfloat16", **MEASURED)
    made = point(explain(facts))
    assert isinstance(made, Point)
    assert made.bound == "bfloat16 matrix"
    shown = [one.name for one in roofline([explain(facts)]).ceilings]
    assert shown == ["float32 FMA", "bfloat16 matrix"]
    unknown = point(explain(dataclasses.replace(facts, precision="float64")))
    assert isinstance(unknown, Point)
    assert (unknown.limit, unknown.bound) == (None, "")


def test_measured_ceilings_take_the_place_of_the_sheets() -> None:
    import msgspec

    gpu = machine().gpus[0]
    assert of_machine(gpu, None).arithmetic[0] == Ceiling(
        "float32 FMA", 256 * 132 * 1.98e9, "data sheet"
    )
    made = [
        Roof(name=n, unit="FLOP/s", value=v, low=v, high=v, samples=(), by="k")
        for n, v in (("float32 FMA", 6e13), ("tf32 matrix", 3e14), ("tf32 matrix", 4e14))
    ]
    held = msgspec.structs.replace(roofs(), roofs=(*roofs().roofs, *made))
    found = {one.name: one for one in of_machine(gpu, held).arithmetic}
    assert found["float32 FMA"] == Ceiling("float32 FMA", 6e13, "measured")
    assert found["tf32 matrix"].rate == 4e14
    assert found["float16 matrix"].source == "data sheet"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"flops": 0}, "computes nothing"),
        ({"flops": None}, "states no FLOP"),
        ({"flops": N, "must_bytes": None}, "bytes that must move are not known"),
    ],
)
def test_a_call_without_a_point_says_why(fields: dict[str, object], why: str) -> None:
    found = explained(**fields)
    assert why in str(point(found))
    made = roofline([found])
    assert not made.points
    assert why in made.absent[0]
    assert why in svg(made)


def test_rows_of_two_cards_have_no_common_roofline() -> None:
    other = changed(flops=N, card=of_architecture("sm_80"))
    with pytest.raises(AssayError, match=r"rows are of 2 \(A100, H100 SXM\)"):
        roofline([explained(flops=N), explain(other)])


def test_the_picture_is_the_golden_one() -> None:
    made = svg(golden())
    xml.etree.ElementTree.fromstring(made)
    assert made == GOLDEN.read_text()


def test_the_picture_says_each_ceilings_source_and_each_points() -> None:
    made = svg(golden())
    for text in (
        "DRAM 3,350 GB/s (data sheet)",
        "(estimated)",
        "float32 FMA 66,908 GFLOP/s (data sheet)",
        "(measured), 67% of what DRAM allows",
        "(by the model, not measured)",
        "no point: copy  cuda/copy  n: it computes nothing",
    ):
        assert text in made
    assert made.count("<circle") == 2
    assert made.count('<rect class="l-point"') == 1  # only where asked and must differ


def test_points_lie_below_the_ceilings_that_are_drawn() -> None:
    made = svg(golden())
    (ceiling,) = re.findall(r'class="l-arithmetic" d="M\S+ ([\d.]+)', made)
    assert all(float(y) > float(ceiling) for y in re.findall(r'cy="([\d.]+)"', made))


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_every_word_can_be_read_on_its_paper(colours: dict[str, str]) -> None:
    """WCAG 2: contrast of at least 4.5 for text."""
    for name in set(colours) - {"paper", "grid"}:
        light, dark = sorted((_luminance(colours[name]), _luminance(colours["paper"])))[::-1]
        assert (light + 0.05) / (dark + 0.05) >= 4.5, name


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_run_is_drawn_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import msgspec

    held = msgspec.structs.replace(row(60e-6, None), flops=N, precision="float32")
    copied = row(60e-6, None)
    file, to = tmp_path / "rows.jsonl", tmp_path / "roof.svg"
    file.write_bytes(b"".join(encode(n) + b"\n" for n in (machine(), roofs(), held, copied)))
    assert len(list(of_rows([machine(), roofs(), held]))) == 1
    options = explaining.Options(str(file), picture=to, as_json=True)
    explaining.run(options)
    said = capsys.readouterr()
    assert all(line.startswith("{") for line in said.out.splitlines())
    placed, absent = (json.loads(line) for line in said.out.splitlines())
    assert placed["point"]["intensity"] == pytest.approx(1 / 8)
    assert (absent["point"], absent["no_point"]) == (None, "its Op states no FLOP")
    assert f"roofline: {to}" in said.err
    assert "no point: copy  cuda/k  n=16777216: its Op states no FLOP" in said.err
    assert "DRAM 4,100 GB/s (measured)" in to.read_text()
    with pytest.raises(AssayError, match=r"name a file ending in \.svg"):
        explaining.run(explaining.Options(str(file), picture=tmp_path / "roof.png"))
