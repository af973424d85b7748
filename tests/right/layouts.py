"""Inputs in every layout, for kernels that take any and for those that want none (I5)."""

import assay

IDS = "I5 I6"


def inputs(make, layout):
    x = make.normal(6, 8)
    made = {
        "transposed": lambda: x.t(),
        "sliced": lambda: x[1:5, ::2],
        "expanded": lambda: x[:1].expand(5, 8),
        "unfolded": lambda: x.flatten().unfold(0, 4, 1),
        "offset": lambda: x.flatten()[1:],
        "channels_last": lambda: x.view(1, 2, 4, 6).permute(0, 3, 1, 2),
        "empty": lambda: x[:0].t(),
        "broadcast_scalar": lambda: x[0, 0].expand(3, 4),
    }[layout]()
    return (made,)


op = assay.Op(
    "layouts_right",
    lambda x: x * 3,
    inputs,
    cases=assay.grid(
        layout=[
            "transposed",
            "sliced",
            "expanded",
            "unfolded",
            "offset",
            "channels_last",
            "empty",
            "broadcast_scalar",
        ]
    ),
)


@op.variant("eager/any", layouts="any")
def any_layout(x):
    return x + 2 * x


@op.launcher("eager/fills_any", layouts="any")
def fills_any(out, x):
    out.copy_(3 * x)


@op.launcher("eager/contiguous")
def contiguous(out, x):
    assert x.is_contiguous()
    out.view(-1).copy_(3 * x.view(-1))
