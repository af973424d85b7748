"""What names of kernels say, on names that were recorded or published."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.inside.reading.names import FMA, TENSOR, Decoded, decode
from assay.inside.reading.trace import read_trace

TRACE = Path(__file__).parent / "fixtures" / "reading" / "trace.json.gz"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_"
            "aligna4_alignc4_execute_kernel__5x_cublas",
            Decoded("cuBLAS", "gemm", "sm_80", "f32f32 f32f32 f32", FMA, (32, 32, 8), 3, "tn"),
        ),
        (
            "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_stage3_warpsize2x2x1_"
            "tensor16x8x8_execute_kernel__5x_cublas",
            Decoded(
                "cuBLAS", "gemm", "sm_80", "f32f32 tf32f32 f32", TENSOR, (128, 128, 32), 3, "nn"
            ),
        ),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",
            Decoded("CUTLASS", "gemm", "sm_80", "sgemm", FMA, (128, 64, 8), 5, "nn"),
        ),
        (
            "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align2",
            Decoded(
                "CUTLASS", "gemm", "sm_80", "bf16 s16816gemm relu bf16", TENSOR, (256, 128, 64), 3,
                "tn",
            ),
        ),
        (
            "cutlass3x_sm90_tensorop_s64x256x16gemm_f16_f16_f32_void_f16_128x256x64_2x1x1_0_tnn_"
            "align8_warpspecialized_cooperative_epi_tma",
            Decoded(
                "CUTLASS", "gemm", "sm_90", "f16 f16 f32 void f16", TENSOR, (128, 256, 64),
                layout="tnn",
            ),
        ),
        (
            "ampere_sgemm_128x64_tn",
            Decoded("cuBLAS", "gemm", "Ampere", "sgemm", FMA, (128, 64), layout="tn"),
        ),
        (
            "ampere_s16816gemm_fp16_256x128_ldg8_stages_32x3_nn",
            Decoded(
                "cuBLAS", "gemm", "Ampere", "s16816gemm fp16", TENSOR, (256, 128, 32), 3, "nn"
            ),
        ),
        (
            "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn",
            Decoded(
                "cuBLAS", "gemm", "Ampere", "fp16 s16816gemm fp16", TENSOR, (128, 64), layout="nn"
            ),
        ),
        (
            "nvjet_sm100_tst_64x16_64x16_2x4_2cta_h_bz_splitk_TNN",
            Decoded("cuBLAS", "gemm", "sm_100", unit=TENSOR, tile=(64, 16)),
        ),
        ("triton_poi_fused_add_mul_2", Decoded("Inductor", "pointwise of add mul")),
        ("triton_per_fused__softmax_0", Decoded("Inductor", "reduction in one pass of  softmax")),
    ],
)  # fmt: skip
def test_what_a_name_says(name: str, said: Decoded) -> None:
    assert decode(name) == said


def test_kernels_of_the_recorded_trace() -> None:
    names = {span.name for span in read_trace(TRACE).of("kernel")}
    said = {decoded.text for name in names if (decoded := decode(name))}
    assert {name.split("<")[0] for name in names if decode(name) is None} == {
        "void cublasLt::splitKreduce_kernel"
    }
    assert {
        "torch elementwise of add, 4 elements at once",
        "torch elementwise of Fill, 4 elements at once",
        "torch elementwise of direct_copy, 128 threads a block",
        "torch reduction of sum, 512 threads a block",
        "CUTLASS gemm, for sm_80, sgemm, FMA units, tile 128x64x8, 5 stages, layout nn",
    } <= said


@pytest.mark.parametrize(
    "name", ["kernel", "_Z6squarePf", "sgemm_128x64", "my_ampere_sgemm_1x1_tn"]
)
def test_other_names_say_nothing(name: str) -> None:
    assert decode(name) is None
