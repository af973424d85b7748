"""`assay.check_operator`: the contract that every torch operator must keep, one row a check.

For operators made by `torch_op` and for those that somebody wrote elsewhere: anything that is
called with tensors. What each check does stands in the docstring of its function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..errors import AssayError, NotRun
from ..faults import told
from ..types import OUTCOMES, Row, Verdict
from . import around, backward, forward, gpu
from .subject import Subject, Wrong, subject_of

Check = Callable[[Subject], Wrong | str | None]
"""Gives what is wrong, or a finding, or None. Raises NotRun with a reason."""

CHECKS: dict[str, Check] = {
    "inputs": forward.inputs_unchanged,
    "aliasing": forward.aliasing,
    "fake": forward.fake,
    "values": forward.right_values,
    "repeats": forward.repeats,
    "gradient": backward.gradient,
    "gradient of one input": backward.partial,
    "gradient again": backward.again,
    "saved": backward.saved,
    "double backward": backward.double,
    "opcheck": around.opcheck,
    "autocast": around.autocast,
    "compile": around.compiled,
    "side stream": gpu.side_stream,
    "second device": gpu.second_device,
    "CUDA graph": gpu.graph,
}


def check_operator(
    fn: Any,
    *inputs: Any,
    reference: Callable[..., Any] | None = None,
    mutates: Iterable[str] | None = None,
    deterministic: bool = False,
    double: bool | None = None,
    backend: str = "aot_eager",
    only: Iterable[str] = (),
) -> list[Row]:
    """Judges a torch operator on these inputs; a row for each check, in the order of CHECKS.

    fn: what `assay.torch_op` or `torch.library.custom_op` returns, `torch.ops.mine.op`, or a
        function of tensors, such as `MyFunction.apply` of a torch.autograd.Function.
    inputs: tensors and numbers that it must take; gradients are judged of those that require one
        (of `torch_op`, of those that its gradient names).
    reference: the same in differentiable PyTorch, the truth in float64; without it results are
        compared with the operator's own on contiguous tensors. With mutates it returns first what
        the changed inputs become.
    mutates: names of inputs that it may change; default what its schema says.
    deterministic: equal inputs must give equal bits, in gradients too.
    double: whether double backward is claimed. backend: of torch.compile. only: names of checks.

    Everything runs in this process. Rows have the words of every verdict: `wrong strides`, `wrong
    gradient`, `changed its input`, ...; `not run` names what is missing. `reason` says more.

    Raises AssayError for inputs or names that can't be used.
    """
    chosen = tuple(only)
    unknown = [name for name in chosen if name not in CHECKS]
    if unknown:
        raise AssayError(
            f"check_operator: no check called {unknown[0]!r}; there are {', '.join(CHECKS)}"
        )
    subject = subject_of(
        fn,
        inputs,
        reference=reference,
        mutates=None if mutates is None else tuple(mutates),
        deterministic=deterministic,
        double=double,
        backend=backend,
    )
    return [_row(subject, n, check) for n, check in CHECKS.items() if not chosen or n in chosen]


def _row(subject: Subject, name: str, check: Check) -> Row:
    state = torch.get_rng_state()
    try:
        found = check(subject)
    except AssayError:
        raise
    except NotRun as error:
        return _made(subject, name, Verdict(word="not run", detail=str(error)))
    except Exception as error:  # noqa: BLE001 - whatever an operator raises is its row
        return _made(subject, name, Verdict(word="crashed", detail=told(error)))
    finally:
        torch.set_rng_state(state)
    if isinstance(found, Wrong):
        verdict = Verdict(word=found.word, detail=found.detail, advice=found.advice)
    else:
        verdict = Verdict(word="right", findings=(found,) if found else ())
    return _made(subject, name, verdict)


def _made(subject: Subject, name: str, verdict: Verdict) -> Row:
    tensors = [x for x in subject.inputs if isinstance(x, torch.Tensor)]
    return Row(
        op=subject.name,
        variant=name,
        way="operator",
        device=str(tensors[0].device),
        outcome=OUTCOMES[verdict.word],
        word=verdict.word,
        reason=verdict.detail or "; ".join(verdict.findings),
        verdict=verdict,
    )
