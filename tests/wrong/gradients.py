"""Gradients that are wrong: a factor, a sum or a term missed, buffers not cleared, values kept."""

import torch

import assay

EXPECT = {
    "eager/three_for_two": ("wrong gradient", "gradient of x: every element"),
    "eager/zero_through_the_transpose": ("wrong gradient", "gradient of x: every element"),
    "eager/not_transposed": ("wrong gradient", "gradient of x"),
    "eager/bias_not_summed": ("wrong shape", "output 1"),
    "eager/bias_of_one_row": ("wrong gradient", "gradient of b"),
    "eager/bias_32_times": ("wrong gradient", "gradient of b: every element"),
    "eager/weights_transposed": ("wrong gradient", "gradient of w"),
    "eager/weights_32_times": ("wrong gradient", "gradient of w: every element"),
    "eager/swapped": ("wrong gradient", "gradient of x"),
    "eager/adds_up": ("wrong gradient", "gradient of x"),
    "eager/summed_not_averaged": ("wrong gradient", "gradient of x: every element"),
    "eager/without_the_mean": ("wrong gradient", "gradient of x"),
    "eager/of_the_square_alone": ("wrong gradient", "gradient of x"),
    "eager/missing": ("crashed", "NotImplementedError"),
    "eager/forgets_the_sum": ("wrong gradient", "gradient of x"),
    "eager/keeps_the_first_y": ("wrong gradient", "gradient of x"),
}
IDS = {
    "eager/three_for_two": "X08",
    "eager/zero_through_the_transpose": "X09",
    "eager/not_transposed": "X09",
    "eager/bias_not_summed": "X10",
    "eager/bias_of_one_row": "X10",
    "eager/bias_32_times": "X11",
    "eager/weights_transposed": "X11",
    "eager/weights_32_times": "X11",
    "eager/swapped": "O4",
    "eager/adds_up": "X14",
    "eager/summed_not_averaged": "X14",
    "eager/without_the_mean": "O4",
    "eager/of_the_square_alone": "X25",
    "eager/missing": "X25",
    "eager/forgets_the_sum": "O4",
    "eager/keeps_the_first_y": "O4",
}
TWIN = {
    "eager/three_for_two": "eager/two",
    "eager/not_transposed": "eager/transposed",
    "eager/zero_through_the_transpose": "eager/transposed",
    "eager/adds_up": "eager/clears",
    "eager/summed_not_averaged": "eager/clears",
    "eager/of_the_square_alone": "eager/of_all",
    "eager/missing": "eager/of_all",
    "eager/bias_not_summed": "eager/bias_summed",
    "eager/bias_of_one_row": "eager/bias_summed",
    "eager/bias_32_times": "eager/bias_summed",
}


def matrix(make, n):
    return (make.normal(n, n),)


def case(n=16):
    return assay.grid(n=[n])


# x + x, of which the one operand's gradient is counted again for the other: 3 where it is 2.
both = assay.Op("both", lambda x: x + x, matrix, cases=case())
both_grad = both.gradient(lambda dy: 2 * dy, wrt="x")


@both_grad.variant("eager/two")
def two(dy):
    return dy + dy


@both_grad.variant("eager/three_for_two")
def three_for_two(dy):
    first = dy.clone()
    return first + (first + dy)


turned = assay.Op("turned", lambda x: x.t().contiguous(), matrix, cases=case())
turned_grad = turned.gradient(lambda dy: dy.t().contiguous(), wrt="x")


@turned_grad.variant("eager/transposed")
def transposed(dy):
    return dy.t().clone(memory_format=torch.contiguous_format)


@turned_grad.variant("eager/zero_through_the_transpose")
def zero_through_the_transpose(dy):
    return torch.zeros_like(dy)  # the gradient went to a copy


@turned_grad.variant("eager/not_transposed")
def not_transposed(dy):
    return dy.clone()


def with_bias(make, n):
    return make.normal(n, n), make.normal(n)


biased = assay.Op("biased", lambda x, b: x + b, with_bias, cases=case())
biased_grad = biased.gradient(lambda dy: (dy.clone(), dy.sum(0)), wrt=("x", "b"))


@biased_grad.variant("eager/bias_summed")
def bias_summed(dy):
    return dy.clone(), torch.ones(len(dy), dtype=dy.dtype) @ dy


@biased_grad.variant("eager/bias_not_summed")
def bias_not_summed(dy):
    return dy.clone(), dy.clone()


@biased_grad.variant("eager/bias_of_one_row")
def bias_of_one_row(dy):
    return dy.clone(), dy[0].clone()


@biased_grad.variant("eager/bias_32_times")
def bias_32_times(dy):
    return dy.clone(), 32 * dy.sum(0)  # every lane of a warp adds it


def with_weights(make, n):
    return make.normal(n, n), make.normal(n, n)


linear = assay.Op("linear", lambda x, w: x @ w.t(), with_weights, cases=case())
linear_grad = linear.gradient(
    lambda dy, x, w: (dy @ w, dy.t() @ x), saves=("x", "w"), wrt=("x", "w")
)


@linear_grad.variant("eager/weights_transposed")
def weights_transposed(dy, x, w):
    return dy @ w, x.t() @ dy


@linear_grad.variant("eager/weights_32_times")
def weights_32_times(dy, x, w):
    return dy @ w, 32 * (dy.t() @ x)


@linear_grad.variant("eager/swapped")
def swapped(dy, x, w):
    return dy.t() @ x, dy @ w


averaged = assay.Op("averaged", lambda x: x.mean(0), matrix, cases=case())
averaged_grad = averaged.gradient(lambda dy, x: (dy / len(x)).expand(x.shape), saves="x", wrt="x")
BUFFER = torch.zeros(16, 16)


@averaged_grad.variant("eager/clears")
def clears(dy, x):
    made = torch.zeros_like(x)
    made += dy / len(x)
    return made


@averaged_grad.variant("eager/adds_up")
def adds_up(dy, x):
    BUFFER.add_(dy / len(x))  # nobody clears it before the next batch
    return BUFFER.clone()


@averaged_grad.variant("eager/summed_not_averaged")
def summed_not_averaged(dy, x):
    return dy.expand(x.shape).clone()


centred = assay.Op("centred", lambda x: x - x.mean(0), matrix, cases=case())
centred_grad = centred.gradient(lambda dy: dy - dy.mean(0), wrt="x")


@centred_grad.variant("eager/without_the_mean")
def without_the_mean(dy):
    return dy.clone()


polynomial = assay.Op("polynomial", lambda x: x * x + x + 1, matrix, cases=case())
polynomial_grad = polynomial.gradient(lambda dy, x: dy * (2 * x + 1), saves="x", wrt="x")


@polynomial_grad.variant("eager/of_all")
def of_all(dy, x):
    return 2 * x * dy + dy


@polynomial_grad.variant("eager/of_the_square_alone")
def of_the_square_alone(dy, x):
    return dy * (2 * x)


@polynomial_grad.variant("eager/missing")
def missing(dy, x):
    raise NotImplementedError("the backward of the polynomial")


rows = assay.Op("rows", lambda x: torch.softmax(x, -1), matrix, cases=case())
rows_grad = rows.gradient(
    lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)), saves="y", wrt="x"
)
KEPT = []


@rows_grad.variant("eager/forgets_the_sum")
def forgets_the_sum(dy, y):
    return y * dy


@rows_grad.variant("eager/keeps_the_first_y")
def keeps_the_first_y(dy, y):
    KEPT.append(y.clone())
    y = KEPT[0]
    return y * (dy - (dy * y).sum(-1, keepdim=True))
