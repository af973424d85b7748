"""Answers that are right once: `stale answer` and `not the same twice` (V14, V16, V17)."""

import torch

import assay

EXPECT = {
    "eager/first_answer_for_ever": ("stale answer", "returned the answer of the call before"),
    "eager/kept_by_shape": ("stale answer", "returned the answer of the call before"),
    "eager/first_seed_only": ("wrong value", "every element"),
    "eager/right_twice": ("not the same twice", "right at first, then with the same inputs"),
    "eager/adds_up": ("wrong value", "every element"),
    "eager/wanders": ("not the same twice", "two runs on the same inputs differ in "),
    "eager/one_output_less_later": ("not the same twice", "0 outputs, expected 1"),
    "eager/other_dtype_later": ("not the same twice", "float64, expected float32"),
    "eager/outside_later": ("not the same twice", "1 value after the end of output 0"),
}
IDS = "V14 V16 V17"


def reference(x):
    return x.exp()


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("repeats", reference, inputs, cases=assay.grid(n=[200]), deterministic=True)

kept = {}


def calls(name):
    """How often the variant was called in this process."""
    kept[name] = kept.get(name, 0) + 1
    return kept[name]


@op.variant("eager/first_answer_for_ever")
def first_answer_for_ever(x):
    return kept.setdefault("first", reference(x)).clone()


@op.variant("eager/kept_by_shape")
def kept_by_shape(x):
    key = tuple(x.shape), x.dtype
    if key not in kept:
        kept[key] = reference(x)
    return kept[key]


@op.variant("eager/first_seed_only")
def first_seed_only(x):
    known = kept.setdefault("inputs", x.clone())
    return reference(x) if torch.equal(known, x) else x * 0


@op.variant("eager/right_twice")
def right_twice(x):
    return reference(x) + (calls("twice") > 2)


total = torch.zeros(200)


@op.variant("eager/adds_up")
def adds_up(x):
    return total.add_(reference(x)).clone()


@op.variant("eager/wanders")
def wanders(x):
    return reference(x) * (1 + 1.2e-7 * calls("wanders"))


@op.variant("eager/one_output_less_later")
def one_output_less_later(x):
    return () if calls("less") > 2 else reference(x)


@op.variant("eager/other_dtype_later")
def other_dtype_later(x):
    return reference(x).double() if calls("dtype") > 2 else reference(x)


@op.launcher("eager/outside_later")
def outside_later(out, x):
    out.copy_(reference(x))
    if calls("outside") > 2:
        out.as_strided((1,), (1,), out.storage_offset() + len(x)).fill_(0.0)
