"""`assay show` on a GPU: its driver and Triton see the registers that were shown without one."""

from __future__ import annotations

import pytest
import torch

from assay.inside import artifacts
from assay.inside.artifacts.model import Shown
from assay.session import Session
from assay.target import parse

pytestmark = pytest.mark.gpu


def arch() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def shown(session: Session, op: str, variant: str) -> Shown:
    return artifacts.shown(session, parse(op), variant, {}, arch())


@pytest.mark.parametrize("op", ["square", "softmax"])
@pytest.mark.parametrize("variant", ["triton", "cuda", "numba", "compiled"])
def test_the_driver_says_the_same(session: Session, op: str, variant: str) -> None:
    from cuda.core import Device, ObjectCode

    names = {("square", "cuda"): "cuda/vectorised", ("softmax", "cuda"): "cuda/online"}
    found = shown(session, op, names.get((op, variant), variant))
    (part,) = found.parts
    assert part.report is not None
    torch.zeros(1, device="cuda")
    Device().set_current()
    kernel = ObjectCode.from_cubin(part.cubin).get_kernel(part.entry)
    assert kernel.attributes.num_regs == part.report.registers
    assert kernel.attributes.local_size_bytes >= (part.report.stack_bytes or 0)


def test_triton_launches_what_was_shown(session: Session) -> None:
    from assay.ops.square.square_triton import kernel

    (part,) = shown(session, "square", "triton").parts
    assert part.report is not None
    assert part.report.grid is not None
    x = torch.randn(4096, 4096, device="cuda")
    ran = kernel[part.report.grid](x, torch.empty_like(x), x.numel(), 1024)
    assert ran.n_regs == part.report.registers
    assert ran.n_spills == 0

    def code(ptx: str) -> list[str]:
        return [line for line in ptx.splitlines() if ".file" not in line]

    assert code(ran.asm["ptx"]) == code(part.texts["ptx"])
