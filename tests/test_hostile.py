"""Hostile inputs: each kind shows the assumption that it is made for, and accuses nobody else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.cases import grid
from assay.errors import OpError
from assay.hostile import CONTIGUOUS, LAYOUTS, VALUES, applies, twisted
from assay.inputs import inputs_of
from assay.op import KINDS, Op
from assay.types import Case
from assay.verdict.zoo import GRID, MOST, hostile, size_names

BLIND = """
import torch, assay

def reference(x):
    return torch.nn.functional.gelu(x, approximate="tanh")

def inputs(make, n):
    return (make.normal(n),)

op = assay.Op("{name}", reference, inputs, cases=assay.grid(n=[1000]){more})
"""

GELU = """
@op.variant("eager/by_exponentials")
def by_exponentials(x):
    e = torch.exp(2 * 0.7978845608028654 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + (e - 1) / (e + 1))

@op.variant("eager/by_tanh")
def by_tanh(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
"""

STRIDES = """
@op.variant("eager/in_a_line", layouts="any")
def in_a_line(x):
    return reference(torch.as_strided(x, (x.numel(),), (1,), x.storage_offset()).clone())

@op.variant("eager/made_contiguous")
def made_contiguous(x):
    return in_a_line(x)
"""

SIZES = """
@op.variant("eager/not_empty")
def not_empty(x):
    return reference(x) if x[0] < 100 else x

@op.variant("eager/whole_blocks")
def whole_blocks(x):
    y = torch.zeros_like(x)
    whole = len(x) // 8 * 8
    y[:whole] = reference(x[:whole])
    return y

@op.variant("eager/aligned")
def aligned(x):
    return reference(x) if x.data_ptr() % 16 == 0 else x.clone()
"""


def failing(rows, variant):
    """The hostile inputs that a variant did not stand, with the words."""
    return {r.case.zoo: r.word for r in rows if r.variant == variant and r.outcome == "fail"}


def test_a_gelu_that_is_nan_from_11_on_is_wrong_and_the_case_named(judge):
    rows = judge(BLIND.format(name="gelu", more="") + GELU, zoo=True)
    wrong = failing(rows, "eager/by_exponentials")
    assert wrong["x:wide"] == "wrong value"
    reason = next(r.reason for r in rows if r.case.zoo == "x:wide" and r.outcome == "fail")
    assert "NaN where the reference has none" in reason
    assert failing(rows, "eager/by_tanh") == {}
    assert failing(rows, "eager") == {}


@pytest.mark.full
def test_only_a_variant_that_says_it_takes_any_layout_is_asked_for_them(judge):
    rows = judge(BLIND.format(name="strides", more="") + STRIDES, zoo=True)
    assert set(failing(rows, "eager/in_a_line")) == {"x:stepped", "x:expanded", "x:broadcast"}
    assert failing(rows, "eager/made_contiguous") == {}
    asked = {r.case.zoo for r in rows if r.variant == "eager/made_contiguous"}
    assert "x:offset" in asked
    assert "x:stepped" not in asked
    advice = next(r.verdict.advice for r in rows if r.case.zoo == "x:stepped" and r.verdict.advice)
    assert "x.stride()" in advice


@pytest.mark.full
def test_sizes_alignment_and_emptiness_show(judge):
    rows = judge(BLIND.format(name="sizes", more="") + SIZES, zoo=True)
    sized = [r for r in rows if r.case.zoo == "size"]
    full = {r.case.values["n"]: r.word for r in sized if r.variant == "eager/not_empty"}
    whole = {r.case.values["n"]: r.word for r in sized if r.variant == "eager/whole_blocks"}
    assert full.pop(0) == "crashed"
    assert set(full.values()) == {"right"}
    assert {word for n, word in whole.items() if n % 8} == {"wrong value"}
    assert failing(rows, "eager/aligned") == {"x:offset": "wrong value"}
    assert failing(rows, "eager") == {}


@pytest.mark.full
def test_what_the_op_excludes_is_not_asked(judge):
    more = ', excludes=("wide", "x:huge")'
    rows = judge(BLIND.format(name="excludes", more=more) + GELU, zoo=True)
    asked = {r.case.zoo for r in rows}
    assert "x:nan" in asked
    assert not {"x:wide", "x:huge"} & asked


def test_a_wrong_word_among_the_excluded_is_refused():
    with pytest.raises(OpError, match="excludes names 'x:nun'; say a kind"):
        Op("f", lambda x: x, lambda make: (), cases=grid(n=[1]), excludes=("x:nun",))
    with pytest.raises(OpError, match="excludes names 'y:nan'"):
        Op("f", lambda x: x, lambda make: (), cases=grid(n=[1]), excludes="y:nan")


OVERFLOWS = """
import torch, assay

def reference(x):
    return (x * x).sqrt() / x.abs().clamp(min=1e-300)

def inputs(make, n):
    return (make.uniform(n, low=1.0, high=2.0),)

op = assay.Op("overflows", reference, inputs, cases=assay.grid(n=[100]))

@op.variant("eager/scaled")
def scaled(x):
    return torch.ones_like(x)
"""


FAR = """
import assay

SOURCE = r'''
#include <cstdint>
extern "C" void wraps(float* y, const float* x, int rows, int n, int step) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++) {
            const uint32_t at = uint32_t(r) * uint32_t(step) + uint32_t(i);
            y[r * n + i] = 2 * x[int32_t(at % (1u << 31))];
        }
}
extern "C" void wide(float* y, const float* x, int rows, int n, int64_t step) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++) y[r * n + i] = 2 * x[r * step + i];
}
'''

op = assay.Op("far", lambda x: 2 * x, lambda make, n: (make.normal(20, n),),
              cases=assay.grid(n=[50]))

@op.launcher("cpp/wraps", source=SOURCE, layouts="any")
def wraps(k, y, x):
    k.wraps(y, x.contiguous() if x.stride(1) != 1 else x, *y.shape, x.stride(0) or 0)

@op.launcher("cpp/wide", source=SOURCE, layouts="any")
def wide(k, y, x):
    k.wide(y, x.contiguous() if x.stride(1) != 1 else x, *y.shape, x.stride(0) or 0)
"""


def test_an_index_of_32_bits_wraps_beyond_2_31_elements_and_no_memory_is_needed(judge):
    rows = judge(FAR, case={"zoo": "x:far"}, variants=("cpp/*",))
    asked = [r for r in rows if not r.reason.startswith("asked of no variant")]
    if not asked:  # the system promises no memory that it does not have
        pytest.skip(rows[0].reason)
    words = {r.variant: r for r in asked}
    assert words["cpp/wide"].word == "right"
    assert words["cpp/wraps"].word == "wrong value"
    assert words["cpp/wraps"].reason.startswith("50 of 1,000 elements, worst at [19,")
    assert "64 bits" in words["cpp/wraps"].verdict.advice


@pytest.mark.full
def test_where_eager_itself_is_wrong_nobody_is_asked_and_a_row_says_so(judge):
    rows = judge(OVERFLOWS, zoo=True)
    huge = [r for r in rows if r.case.zoo == "x:huge"]
    assert [r.word for r in huge] == ["not run"]
    assert huge[0].reason == "asked of no variant: eager itself is not right here"


@pytest.mark.full
def test_one_kind_can_be_asked_for_alone(judge):
    text = BLIND.format(name="alone", more="") + GELU
    rows = judge(text, case={"zoo": "x:wide"})
    assert {r.case.zoo for r in rows} == {"x:wide"}
    with pytest.raises(OpError, match="no hostile input zoo=y:wide"):
        judge(text, case={"zoo": "y:wide"})


@pytest.mark.full
def test_hostile_inputs_are_never_timed(judge):
    rows = judge(BLIND.format(name="timed", more=""), zoo=True, timed=True, variants=("eager",))
    assert all(r.timing is None for r in rows if r.case.zoo)
    assert any(r.timing for r in rows if not r.case.zoo)


def matmul(**more):
    def inputs(make, m, k, n, axis, flip, dtype):
        return make.normal(m, k, dtype=dtype), make.normal(k, n, dtype=dtype)

    cases = grid(m=[4096], k=[8], n=[4096], axis=[1], flip=[True], dtype=["float32", "bfloat16"])
    return Op("matmul", lambda a, b: a @ b, inputs, cases=cases, **more)


def test_sizes_are_the_integers_that_shape_an_input():
    op = matmul()
    assert size_names(op, op.cases[0], 0) == ["m", "k", "n"]


def test_the_base_is_small_and_each_dtype_has_one():
    op = matmul()
    found = list(hostile(op, list(op.cases), (17,), 0))
    twists = [h.case for h in found if h.case.zoo != "size"]
    assert {(c.values["m"], c.values["n"]) for c in twists} == {(96, 96)}
    assert {c.values["dtype"] for c in twists} == {"float32", "bfloat16"}
    assert {"a:nan", "b:nan", "a:transposed", "b:offset"} <= {c.zoo for c in twists}
    sizes = [h.case.values for h in found if h.case.zoo == "size"]
    assert {s["k"] for s in sizes} >= {0, 1, 13, 17, 65}
    for one in found:
        elements = sum(x.numel() for x in inputs_of(op, one.case, 0))
        assert elements <= MOST


def test_the_side_of_a_square_grows_by_its_square():
    op = Op("norm", lambda x: x.norm(), lambda make, n: (make.normal(n, n),), cases=[{"n": 24}])
    sizes = {h.case.values["n"] for h in hostile(op, list(op.cases), (), 0) if h.case.zoo == "size"}
    assert sizes == {0, 1, 13, 65, 257, 1025}


def test_a_grid_above_its_limit_is_asked_where_memory_allows():
    def inputs(make, rows, n):
        return (make.normal(rows, n),)

    op = Op("rows", lambda x: x, inputs, cases=grid(rows=[8], n=[16]))
    found = [h for h in hostile(op, list(op.cases), (), 0) if h.case.values["n"] == 16]
    sizes = [h.case.values for h in found]
    assert dict(rows=GRID, n=16) in sizes
    assert all(h.grid == (h.case.values["rows"] == GRID) for h in found)


def test_a_mutated_input_is_not_expanded():
    def inputs(make, n):
        return (make.normal(n),)

    op = Op("rows", lambda x: x.add_(1), inputs, cases=grid(n=[100]), mutates=("x",))
    kinds = {h.case.zoo for h in hostile(op, list(op.cases), (), 0)}
    assert "x:stepped" in kinds
    assert not {"x:expanded", "x:broadcast"} & kinds


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
dtypes = st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64])


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from([k for k in KINDS if k not in ("size", "far")]),
    shape=shapes,
    dtype=dtypes,
    seed=st.integers(0, 99),
)
def test_every_kind_keeps_shape_and_dtype_and_spares_the_original(kind, shape, dtype, seed):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    before = x.clone()
    if not applies(kind, x):
        return
    made, other = twisted((x, 3.0), ["x", "s"], f"x:{kind}", seed)
    again, _ = twisted((x, 3.0), ["x", "s"], f"x:{kind}", seed)
    assert other == 3.0
    assert made.shape == x.shape
    assert made.dtype == dtype
    assert torch.equal(x, before)
    assert torch.equal(made.isnan(), again.isnan())
    assert torch.equal(made.nan_to_num(), again.nan_to_num())
    if kind in LAYOUTS and kind not in ("expanded", "broadcast"):
        assert torch.equal(made, x)
    if kind in CONTIGUOUS:
        assert made.is_contiguous()
        assert made.storage_offset() == 1


@pytest.mark.parametrize("kind", VALUES)
def test_what_is_never_negative_stays_so(kind):
    x = torch.rand(100)
    if not applies(kind, x):
        assert kind == "masked"
        return
    (made,) = twisted((x,), ["x"], f"x:{kind}", 0)
    assert not bool((made < 0).any())


def test_each_kind_of_values_is_what_it_says():
    x = torch.randn(1000)

    def of(kind):
        return twisted((x,), ["x"], f"x:{kind}", 0)[0]

    tiny, most = torch.finfo(torch.float32).smallest_normal, torch.finfo(torch.float32).max
    assert int(of("nan").isnan().sum()) == 1
    assert sorted(of("inf")[of("inf").isinf()].tolist()) == [-torch.inf, torch.inf]
    assert int(of("masked").isinf().sum()) == 500
    assert bool((of("zeros") == 0).all())
    assert int(torch.signbit(of("zeros")).sum()) == 500
    assert len(of("equal").unique()) == 1
    assert 1e3 < float(of("wide").abs().max()) <= 1e4
    assert float(of("huge").abs().max()) == pytest.approx(most / 4)
    assert float(of("tiny").abs().max()) == pytest.approx(64 * tiny)
    assert int((of("denormal").abs() < tiny).sum()) >= 499


def test_the_label_is_what_a_command_line_takes():
    assert Case({"n": 3}, 0, "x:nan").label == "n=3 zoo=x:nan"


LONG = """
import torch, assay

def reference(x):
    return x - x.amax(-1, keepdim=True)

def inputs(make, rows, n, dtype):
    return (make.normal(rows, n, dtype=dtype),)

op = assay.Op("below", reference, inputs, cases=[
    dict(rows=8, n=100, dtype="float32"),
    dict(rows=8, n=100, dtype="bfloat16"),
    dict(rows=2, n=5000, dtype="float32"),
    dict(rows=2, n=40_000, dtype="float32"),
])

def long(n):
    return n >= 4096 or "meant for 4,096 elements or more"

@op.variant("eager/of_long", when=long)
def of_long(x):
    return reference(x)

@op.variant("eager/blind", when=long)
def blind(x):
    return x - torch.where(x.isnan(), -torch.inf, x).amax(-1, keepdim=True)

@op.variant("eager/of_none", when=lambda n: n > 10**9 or "meant for rows that nobody has")
def of_none(x):
    return reference(x)
"""


def test_a_variant_that_is_not_meant_for_the_base_is_asked_where_it_is(judge):
    rows = [r for r in judge(LONG, zoo=True) if r.case.zoo not in ("", "size")]
    asked = {}
    for row in rows:
        if row.word != "not run":
            place = (row.case.values["rows"], row.case.values["n"], row.case.values["dtype"])
            asked.setdefault(row.variant, set()).add(place)
    small = {(8, 100, "float32"), (8, 100, "bfloat16")}
    # In bfloat16 no case that it is meant for is declared: the sizes of the other dtype do.
    large = {(2, 5000, "float32"), (2, 5000, "bfloat16")}
    assert asked == {"eager": small, "eager/of_long": large, "eager/blind": large}
    assert failing(rows, "eager/of_long") == {}
    assert failing(rows, "eager/blind") == {"x:nan": "wrong value"}


TABLE = """
import torch, assay

KNOWN = {1 << 18: 1, 1 << 19: 2}

def inputs(make, n):
    return (make.normal(n),)

op = assay.Op("doubled", lambda x: x * 2, inputs, cases=assay.grid(n=list(KNOWN)))

@op.variant("eager/of_a_table", when=lambda n: KNOWN[n] == 1 or "meant for others")
def of_a_table(x):
    return x + x
"""


def test_a_when_that_knows_declared_sizes_alone_ends_nothing(judge):
    rows = judge(TABLE, zoo=True)
    words = {(r.variant, bool(r.case.zoo)): r.word for r in rows if r.word != "not run"}
    assert words == {
        ("eager", False): "right",
        ("eager/of_a_table", False): "right",
        ("eager/of_a_table", True): "right",
    }
    assert any("KeyError: 96" in r.reason for r in rows)


def test_nothing_is_made_for_variants_that_are_not_asked():
    op = Op("of_long", lambda x: x, lambda make, n: (make.normal(n),), cases=grid(n=[100, 10**5]))
    op.variant("eager/long", when=lambda n: n > 5000 or "meant for long ones")(lambda x: x)
    every = list(hostile(op, list(op.cases), (), 0))
    assert {(one.of, one.case.values["n"]) for one in every if one.of} == {(("eager/long",), 10**5)}
    assert not [one for one in hostile(op, list(op.cases), (), 0, ["eager"]) if one.of]
    huge = Op("huge", lambda x: x, lambda make, n: (make.normal(n),), cases=grid(n=[100, 1 << 40]))
    huge.variant("eager/long", when=lambda n: n > 5000 or "meant for long ones")(lambda x: x)
    assert not [one for one in hostile(huge, list(huge.cases), (), 0) if one.of], (
        "too large to make"
    )
