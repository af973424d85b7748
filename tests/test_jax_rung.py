"""The rung of JAX and XLA: judged as any other way, its HLO shown, absent where JAX is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from assay.errors import NotRun

FILE = Path(__file__).resolve().parents[1] / "examples" / "jax_rung.py"


@pytest.fixture
def rung() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jax_rung", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_jax_its_rows_are_not_run(
    rung: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NotRun, match="JAX is not here: pip install jax"):
        rung.run("softmax", torch.ones(2, 2))


@pytest.mark.full
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["gelu", "softmax", "matmul"])
def test_jax_computes_what_torch_does(rung: ModuleType, name: str) -> None:
    pytest.importorskip("jax")
    x = torch.randn(33, 33)
    inputs = (x, x.t()) if name == "matmul" else (x,)
    op = getattr(rung, name)
    torch.testing.assert_close(rung.run(name, *inputs), op.reference(*inputs), rtol=1e-5, atol=1e-5)
    text = rung.hlo(name)
    assert text.startswith("HloModule")
    assert "1024,1024" in text
