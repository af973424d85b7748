"""Faults of memory: `not written`, `wrote outside`, `changed its input`, `shares memory`."""

import torch

import assay

EXPECT = {
    "eager/empty_like": ("not written", "300 of 300 elements of output 0, first at [0]"),
    "eager/empty": ("not written", "300 of 300"),
    "eager/new_empty": ("not written", "300 of 300"),
    "eager/empty_strided": ("not written", "300 of 300"),
    "eager/empty_permuted": ("not written", "300 of 300"),
    "eager/legacy_constructor": ("not written", "300 of 300"),
    "eager/positives_only": ("not written", "of 300 elements of output 0"),
    "eager/missing_tail": ("not written", "1 of 300 elements of output 0, first at [299]"),
    "eager/launcher_does_nothing": ("not written", "300 of 300"),
    "eager/first_half": ("not written", "150 of 300 elements of output 0, first at [150]"),
    "eager/after_the_end": ("wrote outside", "1 value after the end of output 0"),
    "eager/before_the_start": ("wrote outside", "1 value before the start of output 0"),
    "eager/both_sides": ("wrote outside", "2 values before the start and 3 values after the end"),
    "eager/beside_the_input": ("wrote outside", "1 value after the end of x"),
    "eager/beside_its_own": ("wrote outside", "1 value after the end of output 0"),
    "eager/beside_scratch": ("wrote outside", "1 value after the end of scratch"),
    "eager/launcher_beside_scratch": ("wrote outside", "1 value before the start of scratch"),
    "eager/uninitialised_scratch": ("not written", "300 of 300"),
    "eager/launcher_uninitialised_scratch": ("not written", "300 of 300"),
    "eager/from_behind_the_input": ("read outside", "1 of 300 elements of output 0"),
    "eager/in_place": ("changed its input", "x, not declared as mutated"),
    "eager/scribbles": ("changed its input", "x, not declared as mutated"),
    "eager/scribbles_a_zero_sign": ("changed its input", "x, not declared as mutated"),
}
IDS = "V9 V10 V12 V13"


def reference(x):
    return torch.relu(x)


def inputs(make, n):
    x = make.normal(n)
    x[5] = 0.0
    return (x,)


op = assay.Op("memory", reference, inputs, cases=assay.grid(n=[300]))


def reach(tensor, first, count):
    """Elements beside a tensor, as a kernel without a mask reaches them."""
    return tensor.as_strided((count,), (1,), tensor.storage_offset() + first)


@op.variant("eager/empty_like")
def empty_like(x):
    return torch.empty_like(x)


@op.variant("eager/empty")
def empty(x):
    return torch.empty(x.shape, dtype=x.dtype)


@op.variant("eager/new_empty")
def new_empty(x):
    return x.new_empty(x.shape)


@op.variant("eager/empty_strided")
def empty_strided(x):
    return torch.empty_strided(x.shape, x.stride())


@op.variant("eager/empty_permuted")
def empty_permuted(x):
    return torch.empty_permuted(x.shape, (0,))


@op.variant("eager/legacy_constructor")
def legacy_constructor(x):
    return torch.FloatTensor(x.numel())


@op.variant("eager/positives_only")
def positives_only(x):
    y = torch.empty_like(x)
    y[x > 0] = x[x > 0]
    return y


@op.variant("eager/missing_tail")
def missing_tail(x):
    y = torch.empty_like(x)
    y[:-1] = reference(x[:-1])
    return y


@op.launcher("eager/launcher_does_nothing")
def launcher_does_nothing(out, x):
    pass


@op.launcher("eager/first_half")
def first_half(out, x):
    out[: len(x) // 2] = reference(x)[: len(x) // 2]


@op.launcher("eager/after_the_end")
def after_the_end(out, x):
    out.copy_(reference(x))
    reach(out, len(x), 1).fill_(1.0)


@op.launcher("eager/before_the_start")
def before_the_start(out, x):
    out.copy_(reference(x))
    reach(out, -1, 1).fill_(1.0)


@op.launcher("eager/both_sides")
def both_sides(out, x):
    out.copy_(reference(x))
    reach(out, -2, 2).fill_(1.0)
    reach(out, len(x), 3).fill_(1.0)


@op.launcher("eager/beside_the_input")
def beside_the_input(out, x):
    out.copy_(reference(x))
    reach(x, len(x), 1).fill_(1.0)


@op.variant("eager/beside_its_own")
def beside_its_own(x):
    y = torch.empty_like(x)
    y.copy_(reference(x))
    reach(y, len(x), 1).fill_(1.0)
    return y


@op.variant("eager/beside_scratch")
def beside_scratch(x):
    scratch = torch.empty_like(x)
    reach(scratch, len(x), 1).fill_(1.0)
    return reference(x)


@op.launcher("eager/launcher_beside_scratch")
def launcher_beside_scratch(out, x):
    scratch = torch.empty_like(x)
    reach(scratch, -1, 1).fill_(1.0)
    out.copy_(reference(x))


@op.variant("eager/uninitialised_scratch")
def uninitialised_scratch(x):
    total = torch.empty_like(x)
    return total.add_(reference(x))


@op.launcher("eager/launcher_uninitialised_scratch")
def launcher_uninitialised_scratch(out, x):
    total = torch.empty_like(x)
    out.copy_(total.add_(reference(x)))


@op.variant("eager/from_behind_the_input")
def from_behind_the_input(x):
    y = reference(x)
    y[-1:] = reach(x, len(x), 1)
    return y


@op.variant("eager/in_place")
def in_place(x):
    return x.relu_().clone()


@op.launcher("eager/scribbles")
def scribbles(out, x):
    out.copy_(reference(x))
    x[17] += 1


@op.launcher("eager/scribbles_a_zero_sign")
def scribbles_a_zero_sign(out, x):
    out.copy_(reference(x))
    x[5] = -0.0
