"""The error budget: what rounding allows passes in any order and dtype, what it does not fails."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import assay
from assay.errors import AssayError
from assay.verdict.binades import beside, spread_out
from assay.verdict.budget import CLASSES, ROUNDOFF, Expected, arithmetic, expect
from assay.verdict.compare import shares, values, within
from assay.verdict.emulate import rounded, with_poorer
from assay.verdict.perturb import PERIOD
from assay.verdict.precision import explained
from assay.verdict.zoo import GRID, SIZES

quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    database=None,
)
SEEDS = st.integers(0, 2**31 - 1)
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
dtypes = st.sampled_from(DTYPES)
LENGTHS = st.sampled_from([1, 2, 3, 17, 64, 257, 1000, 4096])


def known(reference: Any, *inputs: Any) -> Expected:
    made = reference(*inputs)
    outs = made if isinstance(made, tuple) else (made,)
    op = assay.Op("made", reference, lambda make: (), cases=[{}])
    return expect(op, inputs, [(tuple(t.shape), t.dtype) for t in outs])


def right(out: torch.Tensor, expected: Expected, inputs: tuple[Any, ...]) -> bool:
    roundoff = arithmetic([x.dtype for x in inputs], "")
    verdict, wrong = values([out], expected, roundoff, None)
    truth, allowed = expected.truth[0], expected.allowed(0, roundoff)
    assert within(out, truth, allowed) is not wrong  # the two comparisons agree, always
    assert (verdict.word == "right") is not wrong
    return not wrong


def draw(seed: int, *shape: int, dtype: torch.dtype = torch.float32, kind: str = "normal") -> Any:
    generator = torch.Generator().manual_seed(seed)
    x = torch.empty(shape)
    x = x.normal_(generator=generator) if kind == "normal" else x.uniform_(generator=generator)
    return x.to(dtype)


def summed(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


@quick
@given(SEEDS, dtypes, LENGTHS, st.sampled_from(["normal", "uniform"]))
def test_a_sum_is_right_in_any_order(seed: int, dtype: torch.dtype, n: int, kind: str) -> None:
    x = draw(seed, 5, n, dtype=dtype, kind=kind)
    expected = known(summed, x)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    wide = x.float()[:, order]
    one_by_one = wide.cumsum(-1)[:, -1]
    largest_first = wide.sort(-1, descending=True).values.cumsum(-1)[:, -1]
    halves = sum(part.sum(-1) for part in wide.chunk(7, -1))
    for total in (one_by_one, largest_first, halves, wide.double().sum(-1), kahan(wide)):
        assert right(total.to(dtype), expected, (x,))


def kahan(x: torch.Tensor) -> torch.Tensor:
    total, lost = torch.zeros(len(x)), torch.zeros(len(x))
    for column in x.t():
        term = column - lost
        more = total + term
        lost = (more - total) - term
        total = more
    return total


@pytest.mark.full
@quick
@given(SEEDS, st.sampled_from([512, 1024, 4096]), st.sampled_from(["normal", "uniform"]))
def test_a_running_total_in_16_bits_is_wrong(seed: int, n: int, kind: str) -> None:
    for dtype in (torch.bfloat16, torch.float32):
        x = draw(seed, 64, n, dtype=dtype, kind=kind)
        expected = known(summed, x)
        total = torch.zeros(64, dtype=torch.bfloat16)
        for column in x.bfloat16().t():
            total = total + column
        assert not right(total.to(dtype), expected, (x,))


@pytest.mark.parametrize("n", [257, 300, 1000, 4096])
def test_ones_that_are_added_up_in_bfloat16_stop_at_256(n: int) -> None:
    """pytorch#141052: from there on, one more is less than half a step."""
    x = torch.ones(n, dtype=torch.bfloat16)
    op = assay.Op("ones", lambda x: x.sum(), lambda make: (), cases=[{}])
    expected = expect(op, (x,), [((), torch.bfloat16)])
    total = torch.zeros((), dtype=torch.bfloat16)
    for value in x:
        total = total + value
    assert float(total) == 256
    roundoff = arithmetic([x.dtype], "")
    found, wrong = values([total], expected, roundoff, None)
    if n < 260:
        assert not wrong  # 257 is no value of bfloat16: 256 is its nearest
        return
    assert wrong
    said = explained(found, op, (x,), [total], expected, roundoff, "")
    assert said.word == "wrong value"
    assert f"256, expected {n}" in said.detail
    assert "adds up in bfloat16: error grows with n" in said.detail


@quick
@given(SEEDS, dtypes, st.integers(1, 200))
def test_one_step_of_the_dtype_passes_and_three_allowances_fail(
    seed: int, dtype: torch.dtype, n: int
) -> None:
    x = draw(seed, n, dtype=dtype)
    expected = known(torch.exp, x)
    truth = expected.truth[0]
    nearest = truth.to(dtype)
    assert right(nearest, expected, (x,))
    bits = nearest.view(torch.int32 if dtype is torch.float32 else torch.int16)
    for step in (-1, 1):
        assert right((bits + step).view(dtype), expected, (x,))
    allowed = expected.allowed(0, arithmetic([dtype], ""))
    for sign in (-1, 1):
        off = nearest.clone()
        at = seed % n
        off[at] = (truth + sign * 3 * allowed)[at].to(dtype)
        assert not right(off, expected, (x,))


def test_a_unit_roundoff_is_half_the_distance_from_one_to_its_neighbour() -> None:
    for dtype, unit in ROUNDOFF.items():
        assert unit == torch.finfo(dtype).eps / 2
    for name in ("float64", "float32", "float16", "bfloat16"):
        assert CLASSES[name] == ROUNDOFF[getattr(torch, name)]


def test_1000_and_1004_are_one_step_apart_in_bfloat16() -> None:
    x = torch.full((8,), 1000, dtype=torch.bfloat16)
    expected = known(lambda x: x + 2, x)
    for value in (1000, 1004):
        assert right(torch.full_like(x, value), expected, (x,))
    for value in (984, 1020):
        assert not right(torch.full_like(x, value), expected, (x,))


def test_both_field_reports_of_ignored_limits_are_wrong() -> None:
    """V6: ones against 1.005, and 100 randn against 1.0099 times it."""
    ones = torch.ones(100)
    assert not right(ones * 1.005, known(lambda x: x * 1.0, ones), (ones,))
    wide = 100 * draw(3, 1000)
    expected = known(lambda x: x * 1.0, wide)
    verdict, _ = values([wide * 1.0099], expected, arithmetic([torch.float32], ""), None)
    assert verdict.bad == 1000
    assert not right(wide * 1.0099, expected, (wide,))


@quick
@given(SEEDS, dtypes, st.integers(2, 60), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_what_is_not_finite_must_be_where_the_reference_has_it(
    seed: int, dtype: torch.dtype, n: int, special: float
) -> None:
    x = draw(seed, n, dtype=dtype)
    at = seed % n
    plain = known(lambda x: x * 2, x)
    spoiled = (x * 2).clone()
    spoiled[at] = special
    assert not right(spoiled, plain, (x,))
    held = x.clone()
    held[at] = special
    expected = known(lambda x: x * 2, held)
    answer = held * 2
    assert right(answer, expected, (held,))
    for other in (0.0, 65504.0, math.nan, math.inf, -math.inf):
        if other != special and not (math.isnan(other) and math.isnan(special)):
            wrong = answer.clone()
            wrong[at] = other
            assert not right(wrong, expected, (held,))
    moved = answer.clone()
    moved[[at, (at + 1) % n]] = answer[[(at + 1) % n, at]]
    assert not right(moved, expected, (held,))


def test_a_reference_of_nan_alone_excuses_nothing() -> None:
    x = torch.full((10,), math.nan)
    expected = known(lambda x: x + 1, x)
    assert right(x, expected, (x,))
    verdict, wrong = values([torch.zeros(10)], expected, arithmetic([x.dtype], ""), None)
    assert wrong
    assert "10 without the reference's NaN" in verdict.detail
    assert "first at [0]" in verdict.detail


@quick
@given(SEEDS, dtypes, st.integers(-9, 9), st.booleans())
def test_the_verdict_does_not_depend_on_the_scale(
    seed: int, dtype: torch.dtype, power: int, wrong: bool
) -> None:
    """A budget in units of rounding, not a tolerance: powers of two change nothing."""
    x = draw(seed, 4, 100, dtype=dtype)
    off = 1 + (200 * ROUNDOFF[dtype] if wrong else ROUNDOFF[dtype])
    for scale in (1.0, 2.0**power):
        scaled = x * scale
        expected = known(summed, scaled)
        answer = (expected.truth[0] * off).to(dtype)
        # Sums that cancel are allowed what their terms are; those of one sign are not.
        same_sign = known(summed, scaled.abs())
        answer = (same_sign.truth[0] * off).to(dtype)
        assert right(answer, same_sign, (scaled,)) is not wrong


@quick
@given(SEEDS, st.sampled_from([16, 512, 2048]))
@pytest.mark.full
def test_right_products_differ_and_pass_whatever_their_length(seed: int, k: int) -> None:
    """triton#5283: two right answers in float32 differ by 1e-3 at K = 4096."""
    a, b = draw(seed, 12, k), draw(seed + 1, k, 9)
    expected = known(torch.mm, a, b)
    serial = (a[:, :, None] * b[None]).cumsum(1)[:, -1]
    split = sum(x @ y for x, y in zip(a.chunk(4, 1), b.chunk(4, 0)))
    for answer in (serial, split, (a.double() @ b.double()).float()):
        assert right(answer, expected, (a, b))
    for name in ("tf32", "bfloat16"):
        assert not right(rounded(a, name) @ rounded(b, name), expected, (a, b))


MEET = torch.zeros(1000, dtype=torch.long)
SCATTERED: dict[str, tuple[int, Any]] = {
    "index_add": (1000, lambda x: x.new_zeros(100).index_add(0, MEET, x)),
    "index_add_": (1000, lambda x: x.new_zeros(100).index_add_(0, MEET, x)),
    "index_add of rows": (
        250,
        lambda x: x.new_zeros(100, 4).index_add(0, MEET[:250], x.view(250, 4)),
    ),
    "index_reduce": (1000, lambda x: x.new_zeros(100).index_reduce(0, MEET, x, "mean")),
    "index_reduce amax": (1, lambda x: x.new_zeros(100).index_reduce(0, MEET, x, "amax")),
    "scatter_add": (1000, lambda x: x.new_zeros(100).scatter_add(0, MEET, x)),
    "scatter_reduce": (1000, lambda x: x.new_zeros(100).scatter_reduce(0, MEET, x, "sum")),
    "scatter_reduce amax": (1, lambda x: x.new_zeros(100).scatter_reduce(0, MEET, x, "amax")),
    "scatter of rows": (
        100,
        lambda x: x.new_zeros(100, 2).scatter_add(1, MEET.view(10, 100), x.view(10, 100)),
    ),
    "index_put": (1000, lambda x: x.new_zeros(100).index_put((MEET,), x, accumulate=True)),
    "index_put, last wins": (1, lambda x: x.new_zeros(100).index_put((MEET,), x)),
    "in pairs": (10, lambda x: x.new_zeros(100).index_add(0, torch.arange(1000) % 100, x)),
    "embedding": (
        500,
        lambda x: torch.ops.aten.embedding_dense_backward(
            x.view(500, 2), MEET[:500], 50, -1, False
        ),
    ),
}
"""How many terms each sums, of 1,000."""


@pytest.mark.parametrize("name", SCATTERED)
def test_a_scattered_sum_is_as_long_as_the_most_that_meet_in_one_place(name: str) -> None:
    terms, reference = SCATTERED[name]
    assert known(reference, draw(0, 1000)).terms == terms


@pytest.mark.parametrize(
    "reference",
    [
        lambda x: x[:10] * 2,
        lambda x: x.amax(0, keepdim=True),
        lambda x: x[MEET[:10]],
        lambda x: x.topk(3).values,
        lambda x: torch.nn.functional.max_pool1d(x.view(1, 1, -1), 4),
        lambda x: x.view(250, 4).unbind(0)[7],
    ],
)
def test_what_is_picked_is_no_sum(reference: Any) -> None:
    assert known(reference, draw(0, 1000)).terms == 1


def test_all_that_meet_in_one_place_may_be_added_in_any_order() -> None:
    x, where = draw(3, 10_007), torch.full((10_007,), 86)

    def reference(x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(100).index_add(0, where, x)

    expected = known(reference, x)
    running = torch.zeros(100)
    for group in x.sort().values.split(1):  # the worst order that there is
        running[86] += group[0]
    assert right(running, expected, (x,))
    less = running.clone()
    less[86] -= x[0]
    assert not right(less, expected, (x,))


@quick
@given(SEEDS, st.sampled_from(["int8", "int32", "int64", "uint8", "bool"]))
def test_integers_and_booleans_are_exact(seed: int, name: str) -> None:
    dtype = getattr(torch, name)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 2 if name == "bool" else 100, (33,), generator=generator).to(dtype)
    expected = known(lambda x: x.clone(), x)
    assert right(x, expected, (x,))
    off = x.clone()
    at = seed % 33
    off[at] = ~off[at] if name == "bool" else off[at] + 1
    assert not right(off, expected, (x,))


@quick
@given(SEEDS)
@pytest.mark.full
def test_complex_values_have_one_budget_for_both_parts(seed: int) -> None:
    z = torch.complex(draw(seed, 40), draw(seed + 1, 40))
    expected = known(lambda z: z * z, z)
    assert right(z * z, expected, (z,))
    assert not right(z * z * (1 + 1e-4), expected, (z,))
    assert not right((z * z).conj().resolve_conj(), expected, (z,))


def test_accuracy_is_measured_beside_eagers() -> None:
    x = draw(1, 1000, kind="uniform")
    expected = known(lambda x: torch.exp(x) - x, x)
    roundoff = arithmetic([x.dtype], "")
    eager, _ = values([torch.exp(x) - x], expected, roundoff, None)
    assert eager.rms == pytest.approx(eager.eager_rms)
    assert 0 < eager.rms < eager.worst
    exact, _ = values([(torch.exp(x.double()) - x).float()], expected, roundoff, None)
    assert exact.rms < eager.rms
    assert exact.eager_rms == eager.eager_rms
    loose, _ = values([torch.exp(x) - x], expected, 2.0**-11, None)
    assert loose.eager_rms is None  # another scale: no ratio is formed


def test_the_input_at_the_worst_element_is_named_for_elementwise_ops_alone() -> None:
    x = draw(2, 6, 6)
    bad = torch.exp(x)
    bad[2, 3] = 0
    found, _ = values([bad], known(torch.exp, x), 2.0**-24, None, {"x": x})
    assert f"worst at [2, 3]: 0, expected {torch.exp(x.double())[2, 3]:.6g}" in found.detail
    assert f"there x = {x[2, 3]:.6g}" in found.detail
    found, _ = values([bad], known(lambda x: x @ x, x), 2.0**-24, None, {"x": x})
    assert "there" not in found.detail


def test_a_gelu_of_exponentials_is_nan_from_10_07_on_and_says_at_which_input() -> None:
    x = torch.tensor([-3.0, 0.5, 9.0, 10.0, 10.0625, 11.0])

    def gelu(x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))

    def written(x: torch.Tensor) -> torch.Tensor:
        e = torch.exp(2 * 0.7978845608028654 * (x + 0.044715 * x**3))
        return 0.5 * x * (1 + (e - 1) / (e + 1))

    found, wrong = values([written(x)], known(gelu, x), 2.0**-24, None, {"x": x})
    assert wrong
    assert "worst at [4]: nan, expected 10.0625; there x = 10.0625" in found.detail
    assert "2 NaN where the reference has none" in found.detail


def test_poorer_arithmetic_is_emulated_where_the_reference_reduces() -> None:
    x = torch.ones(4, 300)
    op = assay.Op("s", summed, lambda make: (), cases=[{}])
    made = with_poorer(op, (x,), sums="bfloat16")
    assert made is not None
    assert made[0].tolist() == [256.0] * 4
    assert with_poorer(op, (x,), products="tf32") is None
    means = assay.Op("m", lambda x: x.mean(-1), lambda make: (), cases=[{}])
    assert with_poorer(means, (x,), sums="bfloat16")[0].tolist() == [256 / 300] * 4
    product = assay.Op("p", lambda a, b: a @ b, lambda make: (), cases=[{}])
    third = torch.full((2, 2), 1 / 3)
    made = with_poorer(product, (third, third), products="tf32")
    assert made[0][0, 0] == 2 * rounded(third.double(), "tf32")[0, 0] ** 2
    a, b = draw(1, 1, 1000, kind="uniform"), draw(2, 1000, 1, kind="uniform")
    off = with_poorer(product, (a, b), sums="bfloat16")[0] / (a.double() @ b.double()) - 1
    assert 2.0**-9 < abs(float(off)) < 0.5


def test_tf32_keeps_ten_bits_and_leaves_what_is_not_finite() -> None:
    x = torch.tensor([1 + 2.0**-10, 1 + 2.0**-11, 1 + 3 * 2.0**-11, math.inf, math.nan, -0.0])
    low = rounded(x, "tf32")
    assert low[:3].tolist() == [1 + 2.0**-10, 1.0, 1 + 2.0**-9]
    assert low[3] == math.inf
    assert low[4].isnan()
    assert rounded(torch.arange(3), "tf32").tolist() == [0, 1, 2]


def test_shares_are_infinite_where_a_nan_is_out_of_place() -> None:
    truth = torch.tensor([1.0, math.nan, math.inf, 2.0], dtype=torch.float64)
    out = torch.tensor([math.nan, math.nan, math.inf, 2.5])
    share, said = shares(out, truth, torch.ones(4, dtype=torch.float64))
    assert share.tolist() == [math.inf, 0.0, 0.0, 0.5]
    assert said == "1 NaN where the reference has none"


def test_an_eager_that_is_poor_never_makes_zeros_right() -> None:
    """Intermediate results in bfloat16 cancel: eager itself is far off, and zeros stay wrong."""
    x = draw(5, 2000, dtype=torch.bfloat16)
    expected = known(lambda x: (x + 64) - 64 + x * 0.25, x)
    assert expected.scale > 8
    assert not right(torch.zeros_like(x), expected, (x,))
    assert not right(-x, expected, (x,))


def test_an_eager_that_rounds_a_large_result_may_err_by_one_of_its_roundings() -> None:
    """Horner's rule in bfloat16 near a zero of the polynomial, of outputs up to 3."""
    x = draw(6, 1 << 16, dtype=torch.bfloat16, kind="uniform")

    def polynomial(x: torch.Tensor) -> torch.Tensor:
        return (x - 3.25) * x + 0.53

    expected = known(polynomial, x)
    assert expected.needs
    assert right(polynomial(x), expected, (x,))
    assert not right(polynomial(x) + 2.0**-4, expected, (x,))
    assert not right(torch.zeros_like(x), expected, (x,))


def test_a_large_row_excuses_nothing_in_others() -> None:
    """One row is 64 times larger, and intermediate results cancel: zeros elsewhere stay wrong."""
    x = draw(8, 64, 512, dtype=torch.bfloat16)
    x[0] *= 64
    expected = known(lambda x: (x * 1.7 + 64 * x[:, :1]) - 64 * x[:, :1], x)
    assert expected.needs
    zeros = expected.truth[0].to(torch.bfloat16)
    zeros[1:] = 0
    assert not right(zeros, expected, (x,))
    for row in range(1, 64):
        alone = expected.truth[0].to(torch.bfloat16)
        alone[row] = 0
        assert not right(alone, expected, (x,)), row


@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((), 1),
        ((5,), 1),
        ((3, 64), 3),
        ((3, 2, 63), 3),
        ((4, 0), 0),
        ((7, 1), 1),
        ((4096, 32), 2048),
    ],
)
def test_what_lies_beside_is_a_row_or_as_many_short_ones(shape: tuple[int, ...], groups: int):
    size = torch.rand(shape, dtype=torch.float64)
    found = beside(size)
    assert found.numel() == groups
    assert spread_out(found, size).shape == size.shape
    assert (spread_out(found, size) >= size).all()
    if size.numel():
        assert float(found.max()) == float(size.max())


@pytest.mark.parametrize("columns", [32, 60, 63, 64, 512])
def test_a_large_row_excuses_nothing_in_short_rows(columns: int) -> None:
    x = draw(13, 64, columns, dtype=torch.bfloat16)
    s = 128 * draw(14, 64, columns, dtype=torch.bfloat16)
    x[0] *= 1024
    expected = known(lambda x, s: (x * 1.7 + s) - s, x, s)
    truth = expected.truth[0].to(torch.bfloat16)
    wrong = 0
    for row in range(4, 64):
        one = truth.clone()
        one[row] = 0
        wrong += not right(one, expected, (x, s))
    assert wrong >= 58


def test_a_pixel_that_is_exactly_nothing_excuses_nothing_at_other_sizes() -> None:
    """Luma minus green: 0 in a gray pixel, where any error is many times the allowance."""
    r, g, b = (draw(seed, 64, 256, kind="uniform") for seed in (15, 16, 17))
    r[3, 7] = b[3, 7] = g[3, 7] = 0.3

    def luma(r: Any, g: Any, b: Any) -> Any:
        return (r * 0.299 + g * 0.587 + b * 0.114) - g

    expected = known(luma, r, g, b)
    assert right(luma(r, g, b), expected, (r, g, b))
    assert not right((r - g) * 0.2989 + (b - g) * 0.114, expected, (r, g, b))


def test_eager_is_right_on_rows_that_are_exactly_nothing() -> None:
    r, g, b = (draw(seed, 64, 128, dtype=torch.bfloat16) for seed in (0, 1, 2))
    for x in (r, g, b):
        x[5:20] = 0.1484375

    def luma(r: Any, g: Any, b: Any) -> Any:
        return (r * 0.299 + g * 0.587 + b * 0.114) - g

    expected = known(luma, r, g, b)
    assert right(luma(r, g, b), expected, (r, g, b))


def test_a_function_off_by_one_in_its_last_place_is_right_where_it_cancels() -> None:
    """GELU by erf in float32 at -5, where 1 + erf(x) is a few units in the last place of 1."""
    for seed in range(5):
        x = draw(seed, 16, 256, kind="uniform") * 0.8 - 5.4
        x[0] = draw(seed + 50, 256)

        def gelu(x: Any) -> Any:
            return 0.5 * x * (1 + torch.erf(x * 0.5**0.5))

        e = torch.erf(x * 0.5**0.5)
        up = torch.nextafter(e, torch.full_like(e, -2.0 if seed % 2 else 2.0)).clamp(-1, 1)
        expected = known(gelu, x)
        assert right(0.5 * x * (1 + up), expected, (x,)), seed


def test_a_few_rows_that_cancel_at_their_peak_may_be_as_eager_has_them() -> None:
    """Gradient of softmax in bfloat16, y (dy - sum(y dy)): where one y is near 1, dy is near the
    sum, and the row's largest result is far smaller than what is rounded on the way there."""

    def gradient(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        return y * dy - y * (y * dy).sum(-1, keepdim=True)

    x, dy = draw(11, 64, 256) * 3, draw(12, 64, 256, dtype=torch.bfloat16)
    y = torch.softmax(x, -1).to(torch.bfloat16)
    expected = known(gradient, y, dy)
    assert expected.needs
    assert right(gradient(y, dy), expected, (y, dy))
    other = (y.float() * (dy.float() - (y * dy).sum(-1, keepdim=True).float())).to(y.dtype)
    assert right(other, expected, (y, dy))
    assert not right(torch.zeros_like(y), expected, (y, dy))
    assert not right(y * dy, expected, (y, dy))


def test_where_an_eager_is_allowed_less_than_its_own_factor_it_is_said_so() -> None:
    """Of such an input no hostile case is made: an honest kernel may err as far as eager."""
    x = draw(9, 4096, dtype=torch.bfloat16)
    poor = known(lambda x: (x + 256) - 256 + x * 0.25, x)
    assert poor.tight
    assert poor.eager_worst is not None
    assert poor.eager_worst > 0.25
    assert not known(lambda x: x * 2, x).tight


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_inputs_near_by_for_which_a_reference_leaves_its_table_cost_nothing(device: str) -> None:
    """On a GPU such an index would end the process's CUDA: they are asked on the CPU."""
    calls = []

    def looked_up(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.device.type)
        at = (x.double() * 16).long()  # 63, and 64 once x is moved up
        one = torch.ones(64, dtype=x.dtype, device=x.device)[at]
        return (one * 0.99 + 64 * x) - 64 * x  # eager is poor, or nothing near by were asked

    x = torch.full((64,), 63.75 / 16, dtype=torch.bfloat16, device=device)
    expected = known(looked_up, x)
    assert expected.scale > 1
    assert calls[-3:] == ["cpu"] * 3
    assert torch.isfinite(expected.allowed(0, 2.0**-24)).all()


def test_rows_that_stand_above_one_another_move_unlike_each_other() -> None:
    """Differences of equals would not move at all where both get the same sign and size, and an
    eager that rounds once would seem poor."""
    for n in (1 << 16, GRID, *SIZES):
        x = draw(7, 3, n) + 4
        difference = known(lambda x: x[1:] * 3 - x[:-1] * 3, x)
        assert difference.scale < 8
        assert not n or n % PERIOD


def test_inputs_of_one_place_move_unlike_each_other() -> None:
    """A norm's shift beside its scale, say: alike, they would cancel in every draw."""
    w = draw(2, 300)
    (moved,) = known(lambda w, b: w * 3 + b, w, -w * 3).moved
    assert moved is not None
    assert bool((moved > 0.2 * w.abs()).all())


def test_results_that_do_not_lie_row_after_row_move_too() -> None:
    """A gradient that is made of a transposed dy is laid out as dy is."""
    x, y = draw(3, 40, 30), draw(4, 40, 30)
    of_rows, of_columns = (
        known(lambda x, y: x - y * x.sum(-1, keepdim=True), given, y).moved[0]
        for given in (x, x.t().contiguous().t())
    )
    assert of_rows is not None
    assert of_columns is not None
    assert bool((of_columns > 0).all())
    assert torch.equal(of_columns, of_rows)


def test_a_few_results_that_cancel_may_be_rounded_in_another_order() -> None:
    """The gradient of a norm over one element: 1 - x^2 / (x^2 + 1e-6), where the largest x decide.

    An eager that was lucky on those few said nothing of what honest rounding costs.
    """
    for seed in range(30):
        x, dy = draw(seed, 64), draw(seed + 100, 64)

        def gradient(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
            root = (x * x + 1e-6).rsqrt()
            return root * (dy - x * root * (dy * x * root))

        expected = known(gradient, x, dy)
        root = 1 / (x * x + 1e-6).sqrt()
        honest = root * (dy - (x * root) * ((x * root) * dy))
        assert right(honest, expected, (x, dy)), seed
        assert not right(honest * 1.5, expected, (x, dy)), seed


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_floats_of_8_bits_come_in_and_go_out_as_bits_or_wider(dtype: torch.dtype) -> None:
    x = draw(3, 5, 7).to(dtype)
    with pytest.raises(AssayError, match=rf"{str(dtype)[6:]} is not judged.*as uint8 .*float32"):
        known(lambda x: x.T.contiguous(), x)
    doubled = known(lambda x: x.to(torch.get_default_dtype()) * 2, x)
    assert right(x.float() * 2, doubled, (x,))
    assert not right(x.float() * 2.1, doubled, (x,))
    turned = known(lambda x: x.T.contiguous().view(torch.uint8), x)
    assert right(x.view(torch.uint8).T.contiguous(), turned, (x,))
    assert not right(x.view(torch.uint8).T.flip(0).contiguous(), turned, (x,))


def test_in_float64_float32_tells_what_the_reference_itself_loses() -> None:
    """log(1 + 0.004): as many digits are gone from the truth as from a right kernel."""
    for seed in range(20):
        x = draw(seed, 60, 129).double() * 4
        expected = known(lambda x: torch.log_softmax(x, -1), x)
        largest = x.amax(-1, keepdim=True)
        made = (x - largest) - torch.exp(x - largest).sum(-1, keepdim=True).log()
        share = (made - expected.truth[0]).abs() / expected.allowed(0, 2.0**-53)
        assert float(share.max()) <= 1
        wrong = x.float().log_softmax(-1).double()
        assert float(((wrong - expected.truth[0]).abs() / expected.allowed(0, 2.0**-53)).max()) > 1
