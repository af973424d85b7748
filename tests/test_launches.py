"""What a call launches, from recordings that are made up and on a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.commands import launching
from assay.errors import AssayError
from assay.inside.profiling.launched import Launched, Work, choices, launched, text
from assay.inside.profiling.recording import RANGE
from assay.inside.reading.trace import read_trace

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, x>"
FUSED = "triton_poi_fused_add_mul_sigmoid_0"
GEMM = "cutlass_80_simt_sgemm_{}_8x4_nn_align1"


def event(name: str, cat: str, ts: float, dur: float, **args: object) -> dict[str, object]:
    thread = 7 if cat in ("kernel", "gpu_memcpy") else 1
    return {
        "ph": "X",
        "pid": 1,
        "tid": thread,
        "name": name,
        "cat": cat,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def recording(tmp_path: Path, kernels: list[str], calls: int = 2) -> Path:
    """Calls of 100 us that copy 4,096 bytes, then launch each kernel of 8 us in an operator."""
    events: list[dict[str, object]] = []
    for call in range(calls):
        start = 1000.0 * call
        events.append(event(RANGE, "user_annotation", start, 100))
        events.append(event("cudaMemcpyAsync", "cuda_runtime", start + 1, 4))
        events.append(
            event("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", start + 6, 2, bytes=4096)
        )
        for number, name in enumerate(kernels):
            at = start + 10 * (number + 1)
            events.append(event(f"aten::op{number}", "cpu_op", at, 10))
            events.append(event("cudaLaunchKernel", "cuda_runtime", at + 2, 5))
            events.append(event(name, "kernel", at + 200, 8))
            sizes = {"Bytes": 512, "Device Type": 1}
            moment = event("[memory]", "cpu_instant_event", at + 1, 0, **sizes)
            events += [{**moment, "ph": "i"}, {**moment, "ph": "i", "args": {"Bytes": -512}}]
    events.append(event("cudaDeviceSynchronize", "cuda_runtime", 5000, 100))  # of nobody's call
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_host_time_is_split_and_work_is_counted_by_the_call(tmp_path: Path) -> None:
    found = launched(read_trace(recording(tmp_path, [ADD, ADD, "mine"])), "eager", "n=4", "cuda:0")
    assert (found.calls, found.kernels) == (2, 3)
    assert found.operators == ("aten::op0", "aten::op1", "aten::op2")
    assert found.host_seconds == pytest.approx(100e-6)
    assert found.api_seconds == pytest.approx(19e-6), "a copy and three launches; no wait beside"
    assert found.device_seconds == pytest.approx(26e-6)
    assert (found.allocations, found.allocated_bytes) == (3, 1536)
    copy, add, mine = found.work
    assert (add.times, mine.times) == (2, 1)
    assert copy.bandwidth == pytest.approx(4096 / 2e-6)
    said = "\n".join(text(found, None))
    assert "3 kernels; the GPU 26.0 us" in said
    assert "Python and dispatcher 81.0 us, CUDA's calls 19.0 us" in said
    assert "3 allocations, 1,536 bytes" in said
    assert "2 x torch elementwise of add, 4 elements at once" in said
    assert "4,096 bytes at 2.0 GB/s" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_fused_operations_are_named_and_counted_beside_eager(tmp_path: Path) -> None:
    eager = launched(read_trace(recording(tmp_path, [ADD] * 3)), "eager", "n=4", "cuda:0")
    fused = launched(read_trace(recording(tmp_path, [FUSED])), "compiled", "n=4", "cuda:0")
    said = "\n".join(text(fused, eager))
    assert "1 kernel, 2 fewer than eager" in said
    assert "Inductor pointwise of add mul sigmoid" in said
    assert "fewer" not in "\n".join(text(eager, eager))


def test_calls_that_differ_are_no_whole_number(tmp_path: Path) -> None:
    path = recording(tmp_path, [ADD])
    data = json.loads(path.read_text())
    data["traceEvents"].append(event(ADD, "kernel", 300, 8))
    path.write_text(json.dumps(data))
    assert "1.5 kernels" in "\n".join(text(launched(read_trace(path), "x", "", "cuda:0"), None))


def test_a_sweep_lists_the_kernels_that_were_chosen() -> None:
    def one(label: str, n: int, name: str) -> Launched:
        work = (Work(name, "kernel", 1, 1e-6),)
        return Launched(label, f"n={n}", "cuda:0", 1, work, (), 1e-5, 1e-6, 0, 0)

    tiles = {64: "32x32", 256: "32x32", 4096: "256x128"}
    found = [one("eager", n, GEMM.format(tile)) for n, tile in tiles.items()]
    found += [one("mine", n, "mine") for n in tiles]
    said = list(choices(found))
    assert said[0] == "eager: the kernel varies with the case"
    assert said[1].strip() == "n=64; n=256"
    assert "tile 32x32x8" in said[2]
    assert said[3].strip() == "n=4096"
    assert "tile 256x128x8" in said[4]
    assert not any("mine" in line for line in said)


@pytest.mark.gallery
def test_without_a_gpu_the_operators_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    case = "n=10007 dtype=float32"
    assert (
        launching.run(
            "sigmoid_scale_bias", ["eager", "cuda/naive"], case, "cpu", sweep=False, as_json=False
        )
        == 0
    )
    said = capsys.readouterr()
    assert "no work of a GPU; 3 operators" in said.out
    assert "aten::mul, aten::add, aten::sigmoid" in said.out
    assert "3 allocations, 120,084 bytes" in said.out
    assert "cuda/naive: not run: " in said.err
    with pytest.raises(AssayError, match="names no variant; there are eager"):
        launching.run("sigmoid_scale_bias", ["nothing"], case, "cpu", sweep=False, as_json=False)


@pytest.mark.gpu
def test_a_chain_and_what_compile_makes_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    case = "n=10007 dtype=float32"
    assert launching.run("sigmoid_scale_bias", [], case, "cuda:0", sweep=False, as_json=True) == 0
    eager, compiled = map(json.loads, capsys.readouterr().out.splitlines())
    kernels = [[w for w in one["work"] if w["kind"] == "kernel"] for one in (eager, compiled)]
    assert sum(w["times"] for w in kernels[0]) == 3
    assert [w["name"] for w in kernels[1]] == [FUSED]
    assert 0 < eager["api_seconds"] < eager["host_seconds"]
    assert eager["allocations"] == 3
    assert compiled["allocations"] == 1
