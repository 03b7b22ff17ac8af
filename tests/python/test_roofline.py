"""The cost of operators by their shapes, against PyTorch's own formulas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from device_traces import TraceWriter, conformance_file

pytest.importorskip("numpy")


def one_operator(
    path: Path, name: str, dims: list[Any], dtype: str = "c10::BFloat16", **said: Any
) -> hr.Trace:
    """An operator with shapes whose one kernel takes 100 us, on an H100."""
    trace = TraceWriter()
    trace.head["deviceProperties"] = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]
    types = [dtype if shape else "" for shape in dims]
    trace.host("cpu_op", name, 1000, 50, **{"Input Dims": dims, "Input type": types}, **said)
    trace.launch(1, 1010).kernel("kernel", 1, 1100, 100)
    return hr.Trace.load(trace.write(path / "trace.json"))


def row_of(trace: hr.Trace, **peaks: float) -> dict[str, Any]:
    (row,) = trace.roofline(**peaks).rows()
    return row


def scalars(*values: str) -> dict[str, list[str]]:
    return {"Concrete Inputs": list(values)}


def cases() -> list[Any]:
    flops = pytest.importorskip("torch.utils.flop_counter")
    q, k = [2, 8, 128, 64], [2, 8, 256, 64]
    conv = [[4, 16, 30, 31], [32, 8, 3, 5], [32]]
    out = [4, 32, 15, 29]
    gradients = [[2, 8, 16, 16], [2, 4, 16, 16], [8, 4, 3, 3]]
    return [
        ("aten::mm", [[64, 32], [32, 16]], {}, flops.mm_flop([64, 32], [32, 16])),
        ("aten::addmm", [[16], [64, 32], [32, 16]], {}, flops.addmm_flop([16], [64, 32], [32, 16])),
        ("aten::bmm", [[5, 64, 32], [5, 32, 16]], {}, flops.bmm_flop([5, 64, 32], [5, 32, 16])),
        (
            "aten::_scaled_dot_product_flash_attention",
            [q, k, k, [], []],
            scalars("", "", "", "0.", "False"),
            flops.sdpa_flop_count(q, k, k),
        ),
        (
            "aten::_flash_attention_forward",
            [[2, 128, 8, 64], [2, 256, 8, 64], [2, 256, 8, 64]],
            {},
            flops.sdpa_flop_count(q, k, k),
        ),
        (
            "aten::cudnn_convolution",
            conv[:2],
            scalars("", "", "[1, 1]", "[2, 1]", "[1, 1]", "2"),
            flops.conv_flop_count([4, 16, 30, 31], [32, 8, 3, 5], [4, 32, 15, 29]),
        ),
        (
            "aten::convolution",
            conv,
            scalars("", "", "", "[2, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"),
            flops.conv_flop_count([4, 16, 30, 31], [32, 8, 3, 5], out),
        ),
        (
            "aten::convolution_backward",
            gradients,
            scalars(*[""] * 10, "[True, True, False]"),
            2 * flops.conv_flop_count(gradients[1], gradients[2], gradients[0]),
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("index", range(8))
def test_operations_are_those_of_pytorchs_counter(tmp_path: Path, index: int) -> None:
    name, dims, said, expected = cases()[index]
    row = row_of(one_operator(tmp_path, name, dims, **said))
    assert row["gflops"] * 1e9 == pytest.approx(expected)
    assert row["calls"] == 1
    assert row["device_s"] == pytest.approx(1e-4)
    assert row["tflops"] == pytest.approx(expected / 1e-4 / 1e12)


def test_causal_attention_computes_half(tmp_path: Path) -> None:
    shapes = [[2, 8, 128, 64]] * 3
    name = "aten::_scaled_dot_product_flash_attention"
    whole = row_of(one_operator(tmp_path, name, shapes, **scalars("", "", "", "0.", "False")))
    causal = row_of(one_operator(tmp_path, name, shapes, **scalars("", "", "", "0.", "True")))
    assert causal["gflops"] == whole["gflops"] / 2


def test_what_limits_follows_from_the_shapes(tmp_path: Path) -> None:
    large = row_of(one_operator(tmp_path, "aten::mm", [[4096, 4096], [4096, 4096]]))
    assert (large["kind"], large["bound"]) == ("gemm", "compute")
    assert large["roofline_s"] == pytest.approx(2 * 4096**3 / 989.4e12)
    thin = row_of(one_operator(tmp_path, "aten::mm", [[8, 4096], [4096, 4096]]))
    assert thin["bound"] == "memory"
    assert thin["call_bytes"] == 2 * (8 * 4096 + 4096 * 4096 + 8 * 4096)
    assert thin["roofline_pct"] == pytest.approx(100 * thin["call_bytes"] / 3350e9 / 1e-4)
    known = row_of(
        one_operator(tmp_path, "aten::mm", [[8, 4096], [4096, 4096]]), peak_tflops=1, peak_gbps=3350
    )
    assert known["bound"] == "compute"
    norm = row_of(one_operator(tmp_path, "aten::native_layer_norm", [[8, 4096], [], [4096], [4096]], "float"))
    assert (norm["kind"], norm["bound"]) == ("normalisation", "memory")
    assert norm["call_bytes"] == 4 * (2 * 8 * 4096 + 2 * 4096)


def test_what_has_no_formula_is_said(tmp_path: Path) -> None:
    table = one_operator(tmp_path, "mine::fused", [[8, 8]]).roofline()
    assert len(table) == 0
    assert any("without a formula" in note for note in table.notes)
    trace = TraceWriter()
    trace.host("cpu_op", "aten::mm", 1000, 50)
    trace.launch(1, 1010).kernel("gemm", 1, 1100, 100)
    (note,) = hr.Trace.load(trace.write(tmp_path / "plain.json")).roofline().notes
    assert "record_shapes=True" in note


def test_shapes_that_are_none_do_no_harm(tmp_path: Path) -> None:
    for dims in (
        [],
        [[]],
        [[8]],
        [[8, -1], [4, 4]],
        [[8, 8], [4, 4]],
        [[[8, 8]], [8, 8]],
        [["s0", 8], [8, 8]],
    ):
        one_operator(tmp_path, "aten::mm", dims).roofline()
    for text in ('"', "[[1,", "[[]]]]]", "]", "[[1e999, 2], [2, 3]]"):
        trace = json.loads(TraceWriter().host("cpu_op", "aten::mm", 1000, 50).launch(1, 1010).text())
        trace["traceEvents"][0]["args"] = {"Input Dims": text, "Input type": text}
        (tmp_path / "odd.json").write_text(json.dumps(trace))
        hr.Trace.load(tmp_path / "odd.json").roofline()


def test_a_real_model_has_rates_below_its_devices_peak() -> None:
    table = hr.Trace.load(conformance_file("traces/kineto_mi300_bert.json.gz")).roofline()
    rows = list(table.rows())
    assert {row["kind"] for row in rows} >= {"gemm", "attention", "normalisation", "elementwise"}
    assert all(0 < row["roofline_pct"] <= 100 for row in rows)
