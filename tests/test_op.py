"""Op, grid and variants: what can be declared, and what is said of what can't."""

from __future__ import annotations

import enum
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assay.cases import expanded, grid, parse_values, scalar
from assay.describe import chosen
from assay.errors import OpError
from assay.op import Op, call_with, cost, make_inputs, ops_in, parameters, supported
from assay.ops.square import square
from assay.types import Case


def reference(x: Any) -> Any:
    return x


def inputs(make: Any, n: int, dtype: str = "float32") -> tuple[Any, ...]:
    return (n, dtype)


def an_op(**given: Any) -> Op:
    given = {"reference": reference, "inputs": inputs, "cases": grid(n=[1, 2]), **given}
    return Op(given.pop("name", "copy"), given.pop("reference"), given.pop("inputs"), **given)


# Cases


def test_grid_varies_the_first_name_slowest() -> None:
    made = grid(n=[1, 2], dtype=["fp32", "bf16"])
    assert [c.label for c in made] == [
        "n=1 dtype=float32",
        "n=1 dtype=bfloat16",
        "n=2 dtype=float32",
        "n=2 dtype=bfloat16",
    ]
    assert grid(n=5, dtype="half") == (Case({"n": 5, "dtype": "float16"}),)
    assert grid() == (Case(),)
    assert len(grid(n=range(3))) == 3


def test_aliases_are_for_dtypes_alone() -> None:
    (case,) = grid(mode="double", dtype="double", out_dtype="bf16")
    assert case.values == {"mode": "double", "dtype": "float64", "out_dtype": "bfloat16"}


class Size(enum.IntEnum):
    SMALL = 3


def test_values_are_kept_as_plain_kinds_that_rows_can_hold() -> None:
    (case,) = grid(x=np.float64(0.5), n=Size.SMALL, flag=True)
    assert [type(v) for v in case.values.values()] == [float, int, bool]


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"n": []}, r"grid\(n=\.\.\.\): no value given"),
        ({"n": None}, r"grid\(n=\.\.\.\): None is no value"),
        ({"n": [None]}, "n=None is a NoneType; it must be int, float, bool or str"),
        ({"n": [2**63]}, "n=9223372036854775808 does not fit 64 bits"),
        ({"n": [np.int64(3)]}, "is a int64"),
        ({"shape": [(1, 2)]}, "is a tuple"),
    ],
)
def test_grid_names_what_no_case_can_hold(axes: dict[str, Any], said: str) -> None:
    with pytest.raises(OpError, match=said):
        grid(**axes)


def test_a_case_counts_to_the_last_of_64_bits() -> None:
    assert grid(n=[-(2**63), 2**63 - 1])[1].values == {"n": 2**63 - 1}


# Op


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "my op"}, "a name is letters, digits and underscores"),
        ({"name": "größe"}, "a name is letters"),
        ({"name": ""}, "a name is letters"),
        ({"name": reference}, "a name is letters"),
        ({"reference": 3}, "copy: reference is 3, not a function"),
        ({"inputs": None}, "copy: inputs is None, not a function"),
        ({"cases": []}, r"copy: no cases; give e\.g\."),
        ({"cases": {"n": 1}}, "give a list of cases"),
        ({"cases": Case({"n": 1})}, "give a list of cases"),
        ({"cases": None}, "give a list of cases"),
        ({"cases": [3]}, "case 3 is no dict"),
        ({"cases": [{"n": [1]}]}, "is a list"),
        ({"cases": [{"not a name": 1}]}, "is no name that a function can take"),
        ({"cases": [Case({"n": None})]}, "is a NoneType"),
        ({"cases": grid(dtype=["fp32", "float32"])}, "'dtype=float32' is given twice"),
        ({"mutates": ("z",)}, "mutates names 'z', and the reference takes x"),
        ({"mutates": "z"}, "mutates names 'z'"),
    ],
)
def test_op_names_what_is_declared_wrongly(given: dict[str, Any], said: str) -> None:
    with pytest.raises(OpError, match=said):
        an_op(**given)


def test_cases_that_only_python_calls_equal_are_two() -> None:
    assert len(an_op(cases=[{"n": 1}, {"n": True}, {"n": 1.0}]).cases) == 3
    assert len(an_op(cases=[Case({"n": 1}, 0), Case({"n": 1}, 1)]).cases) == 2


def test_an_op_begins_with_eager_and_compiled_and_takes_yours_instead() -> None:
    op = an_op()
    assert [v.name for v in op.variants] == ["eager", "compiled"]

    @op.variant("eager")
    def mine(x: Any) -> Any:
        return x + 0

    assert op.find("eager").function is mine
    with pytest.raises(OpError, match="two variants are called 'eager'"):
        op.variant("eager")(reference_of_another_kind)


def reference_of_another_kind(x: Any) -> Any:
    return x


# Variants


def launch(out: Any, x: Any, BLOCK: int = 1, STAGES: int = 1) -> None:
    pass


def test_knobs_give_every_combination_the_default_first() -> None:
    op = an_op()
    op.launcher("triton", knobs={"BLOCK": [128, 256], "STAGES": 3})(launch)
    assert op.find("triton").configurations() == [
        {"BLOCK": 128, "STAGES": 3},
        {"BLOCK": 256, "STAGES": 3},
    ]
    assert op.find("eager").configurations() == [{}]


@pytest.mark.parametrize(
    ("name", "declared", "said"),
    [
        ("tritn", {}, "copy: no way called 'tritn'; the ways are eager, compiled, python"),
        ("triton", {"knob": {}}, "declares 'knob'; known are .*knobs"),
        ("triton", {"knobs": {"BLOC": [1]}}, r"has the knob 'BLOC', and its function takes \(out,"),
        ("triton", {"knobs": {"BLOCK": []}}, "knob BLOCK: no value given"),
        ("triton", {"knobs": {"BLOCK": [(1, 2)]}}, "BLOCK=.* is a tuple"),
        ("triton", {"layouts": "contigous"}, "say 'contiguous' or 'any'"),
        (
            "cuda",
            {"source": "none.cu"},
            r"the source .*; .*tests/none\.cu is no file",
        ),
    ],
)
def test_a_variant_names_what_is_declared_wrongly(
    name: str, declared: dict[str, Any], said: str
) -> None:
    with pytest.raises(OpError, match=said):
        an_op().launcher(name, **declared)(launch)


def test_two_variants_of_one_name_are_refused() -> None:
    op = an_op()
    op.launcher("cpp/one")(launch)
    op.launcher("cpp/two")(launch)
    with pytest.raises(OpError, match="two variants are called 'cpp/one'; rename one"):
        op.launcher("cpp/one")(launch)
    with pytest.raises(OpError, match="no variant 'cpp'; there are eager, compiled, cpp/one"):
        op.find("cpp")


def test_files_are_beside_the_function_and_one_string_is_one_word() -> None:
    op = an_op()
    op.launcher("cpp", source="test_op.py", flags="-O2", include="headers")(launch)
    variant = op.find("cpp")
    here = Path(__file__).resolve().parent
    assert variant.source == here / "test_op.py"
    assert variant.flags == ("-O2",)
    assert variant.include == (str(here / "headers"),)


# Functions of case values


def test_call_with_passes_what_a_function_names() -> None:
    values = {"n": 3, "dtype": "float32"}
    assert call_with(lambda n: n * 2, values, "flops") == 6
    assert call_with(lambda n, m=5: n * m, values, "flops") == 15
    assert call_with(lambda **given: sorted(given), values, "flops") == ["dtype", "n"]
    assert call_with(lambda: 7, values, "flops") == 7
    with pytest.raises(OpError, match="flops takes 'm', which the case does not have; it has n, d"):
        call_with(lambda n, m: n * m, values, "flops")


def test_make_inputs_says_which_name_does_not_fit() -> None:
    assert make_inputs(an_op(), None, Case({"n": 4})) == (4, "float32")
    with pytest.raises(OpError, match=r"the cases have 'rows', and inputs\(make, n, dtype\)"):
        make_inputs(an_op(), None, Case({"rows": 4}))
    with pytest.raises(OpError, match="inputs takes 'n', and the case 'dtype=float32' has no such"):
        make_inputs(an_op(), None, Case({"dtype": "float32"}))
    lists = an_op(inputs=lambda make, **values: [values])
    with pytest.raises(OpError, match="returned a list; return a tuple"):
        make_inputs(lists, None, Case({"n": 4}))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(True, ""), ("odd n", "odd n"), (False, "the Op does not promise this case"), ("", "the Op")],
)
def test_supported_is_true_or_a_reason(answer: bool | str, reason: str) -> None:
    said = supported(an_op(supports=lambda n: answer), Case({"n": 1}))
    assert said.startswith(reason)
    assert bool(said) == (answer is not True)


def test_cost_is_a_count_or_refused() -> None:
    op = an_op(flops=lambda n: 2.5 * n)
    assert cost(op, "flops", Case({"n": 2})) == 5
    assert cost(op, "bytes", Case({"n": 2})) is None
    for value in (-1, math.nan, math.inf, "many", None, 2**63):
        with pytest.raises(OpError, match=r"copy: flops\(n=2\) gave .*give a count"):
            cost(an_op(flops=lambda n, value=value: value), "flops", Case({"n": 2}))


def test_parameters_are_those_given_by_position() -> None:
    assert parameters(lambda a, b=1, *rest, c, **more: a) == ["a", "b"]
    assert parameters(dict) == []


def test_ops_of_a_module_come_once_in_order() -> None:
    one, two = an_op(name="one"), an_op(name="two")
    assert ops_in(SimpleNamespace(b=two, a=one, again=two, other=3)) == [two, one]


# Values typed on a command line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("7.0", 7.0),
        ("1e-3", 1e-3),
        ("1<<16", 65536),
        ("1<<99", "1<<99"),
        ("true", True),
        ("False", False),
        ("bf16", "bf16"),
        ("", ""),
        ("²", "²"),
    ],
)
def test_scalar_reads_numbers_as_numbers(text: str, value: Any) -> None:
    read = scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_parse_values_reads_what_a_label_prints() -> None:
    case = Case({"n": 4096, "x": 0.5, "flag": True, "dtype": "bfloat16"})
    assert parse_values(case.label) == case.values
    assert parse_values("n=1<<4,dtype=fp32") == {"n": 16, "dtype": "float32"}
    assert parse_values("  ") == {}


@pytest.mark.parametrize("text", ["n", "n:4", "=4", "2n=4", "n=4 and"])
def test_parse_values_names_what_is_no_pair(text: str) -> None:
    with pytest.raises(OpError, match="is not name=value"):
        parse_values(text)


# Choosing among cases

SOME = grid(n=[1, 1000], dtype=["float32", "bfloat16"])


@pytest.mark.parametrize(
    ("wanted", "dtypes", "labels"),
    [
        ({}, [], [c.label for c in SOME]),
        ({"n": 1}, [], ["n=1 dtype=float32", "n=1 dtype=bfloat16"]),
        ({}, ["bfloat16"], ["n=1 dtype=bfloat16", "n=1000 dtype=bfloat16"]),
        ({"n": 1, "dtype": "float32"}, [], ["n=1 dtype=float32"]),
        ({"dtype": "float64", "n": 5}, [], ["n=5 dtype=float64"]),
    ],
)
def test_chosen_cases(wanted: dict[str, Any], dtypes: list[str], labels: list[str]) -> None:
    assert [c.label for c in chosen(an_op(cases=SOME), wanted, dtypes)] == labels


@pytest.mark.parametrize(
    ("wanted", "dtypes", "said"),
    [
        ({"m": 1}, [], "no case has 'm'; the values are n, dtype"),
        ({"n": 5}, [], "no case has n=5; give every value for a new one, or choose among: n=1 d"),
        ({}, ["int8"], "no case has.*int8"),
        ({"n": 1}, ["int8", "int16"], "no case has n=1 .*int8 or int16"),
    ],
)
def test_chosen_says_what_there_is_instead(
    wanted: dict[str, Any], dtypes: list[str], said: str
) -> None:
    with pytest.raises(OpError, match=said):
        chosen(an_op(cases=SOME), wanted, dtypes)


def test_a_range_is_every_step_and_the_last() -> None:
    made = expanded(parse_values("m=4096 n=256:12672:128 dtype=fp32"))
    assert len(made) == 98
    assert (made[0]["n"], made[-1]["n"]) == (256, 12672)
    assert {(one["m"], one["dtype"]) for one in made} == {(4096, "float32")}
    assert [one["n"] for one in expanded({"n": "3:5"})] == [3, 4, 5]
    assert [tuple(one.values()) for one in expanded({"m": "1:2", "n": "3:7:3"})] == [
        (1, 3), (1, 6), (2, 3), (2, 6),
    ]  # fmt: skip
    assert expanded({"n": 4}) == [{"n": 4}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n=5:3", "a range is first:last:step, upwards"),
        ("n=1:9:0", "a range is first:last:step, upwards"),
        ("n=1:1000 m=1:1000", "makes 1,000,000 cases, at most 10,000; take larger steps"),
    ],
)
def test_a_range_of_nothing_or_too_much_is_refused(text: str, why: str) -> None:
    with pytest.raises(OpError, match=why):
        expanded(parse_values(text))


def test_a_range_makes_cases_of_its_own() -> None:
    wanted = parse_values("n=7:9 m=5")
    assert [c.label for c in chosen(square, wanted, [])] == [
        f"m=5 n={n} dtype=float32" for n in (7, 8, 9)
    ]
    found = chosen(square, {"n": "7:8"}, ["float32", "bfloat16"])
    assert [(c.values["m"], c.values["n"], c.values["dtype"]) for c in found] == [
        (1, 7, "float32"), (1, 7, "bfloat16"), (1, 8, "float32"), (1, 8, "bfloat16"),
    ]  # fmt: skip
    with pytest.raises(OpError, match="no case has 'k'"):
        chosen(square, {"k": "7:8"}, [])
