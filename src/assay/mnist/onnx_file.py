"""The trained network as ONNX: plain nodes, batchnorm with its batch's statistics as in training.

Nothing is folded or frozen: what is exported computes what was trained, for any size of the batch.
Input `images` (n, 1, side, side), normalised; output `logits` (n, classes). Operators of opset 18.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import AssayError
from .layers.batchnorm2d import EPSILON
from .train import State

OPSET = 18
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
ALLOWED = 1e-4
"""Largest difference between the logits of ONNX Runtime and ours, as a share of the largest."""


def _module(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise AssayError(
            f"export needs {name}, which is not installed: pip install 'assay[mnist]'"
        ) from None


def write(state: State, path: Path) -> None:
    """Writes the network of a state. Raises AssayError without the package onnx."""
    onnx = _module("onnx")
    helper, values = onnx.helper, {n: v.numpy() for n, v in state.parameters.items()}
    nodes: list[Any] = []

    def node(op: str, given: list[str], name: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, given, [name], name=name, **attributes))
        return name

    values["over"] = np.array([0, 2, 3], np.int64)
    values["epsilon"] = np.array(EPSILON, np.float32)
    x = "images"
    for i in ("1", "2"):
        for part in ("weight", "bias"):  # one number a channel
            values[f"bn{i}.{part}"] = values[f"bn{i}.{part}"].reshape(-1, 1, 1)
        x = node("Conv", [x, f"conv{i}.weight", f"conv{i}.bias"], f"conv{i}", pads=[1, 1, 1, 1])
        mean = node("ReduceMean", [x, "over"], f"mean{i}", keepdims=1)
        centred = node("Sub", [x, mean], f"centred{i}")
        squares = node("Mul", [centred, centred], f"squares{i}")
        var = node("ReduceMean", [squares, "over"], f"var{i}", keepdims=1)
        deviation = node("Sqrt", [node("Add", [var, "epsilon"], f"above{i}")], f"deviation{i}")
        x = node("Div", [centred, deviation], f"normal{i}")
        x = node("Mul", [x, f"bn{i}.weight"], f"scaled{i}")
        x = node("Relu", [node("Add", [x, f"bn{i}.bias"], f"bn{i}")], f"relu{i}")
        x = node("MaxPool", [x], f"pool{i}", kernel_shape=[2, 2], strides=[2, 2])
    x = node("Flatten", [x], "flat", axis=1)
    x = node("Gemm", [x, "fc1.weight", "fc1.bias"], "fc1", transB=1)
    x = node("Relu", [x], "relu3")
    node("Gemm", [x, "fc2.weight", "fc2.bias"], "logits", transB=1)
    sizes, real = state.plan.sizes, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "mnist",
        [helper.make_tensor_value_info("images", real, ["n", 1, sizes.side, sizes.side])],
        [helper.make_tensor_value_info("logits", real, ["n", sizes.classes])],
        [onnx.numpy_helper.from_array(np.ascontiguousarray(v), n) for n, v in values.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    # The oldest format with these operators: older runtimes take it too.
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="assay")
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())


def logits(path: Path, images: np.ndarray) -> np.ndarray:
    """What ONNX Runtime's CPU makes of images (n, 1, side, side) float32. Raises AssayError."""
    found: np.ndarray = session(path).run(["logits"], {"images": images})[0]
    return found


def session(path: Path, device: str = "cpu") -> Any:
    """The file opened by ONNX Runtime, with torch's number of threads. Raises AssayError.

    device: `cpu` or `cuda`, where a build without a GPU takes the CPU: see its get_providers().
    """
    runtime = _module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    wanted = [CUDA, CPU] if device == "cuda" else [CPU]
    here = [one for one in wanted if one in runtime.get_available_providers()]
    return runtime.InferenceSession(str(path), options, providers=here)


def difference(found: np.ndarray, ours: np.ndarray) -> float:
    """The largest difference of two sets of logits, as a share of the largest of ours."""
    return float(np.abs(found - ours).max() / np.abs(ours).max())
