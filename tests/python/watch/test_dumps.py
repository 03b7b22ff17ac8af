"""Dumps of tensors: the operator whose numbers went wrong first."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

HEADER = (
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
    "Max Value,Min Value,L2Norm Value"
)


def mindspore(folder: Path, lines: list[str], header: str = HEADER, rank: int = 0, step: int = 3) -> Path:
    where = folder / f"rank_{rank}" / "Net" / "0" / str(step)
    where.mkdir(parents=True)
    (where / "statistic.csv").write_text("\n".join([header, *lines]) + "\n")
    return folder


def rows(folder: Path, **more: Any) -> list[tuple[Any, ...]]:
    return [
        (row["step"], row["operator"], row["kind"], "begins here" in row["says"])
        for row in hr.check_dump(folder, **more).rows()
    ]


def test_the_first_operator_of_mindspore_in_the_order_of_time(tmp_path: Path) -> None:
    folder = mindspore(
        tmp_path,
        [
            "Add,Default/Add-op2,2,0,30,input,0,64,float32,(4 4),nan,nan,nan",
            "Add,Default/Add-op2,2,0,31,output,0,64,float32,(4 4),nan,nan,nan",
            "Log,Default/Log-op1,1,0,20,input,0,64,float32,(4 4),1.0,-1.0,3.0",
            "Log,Default/Log-op1,1,0,21,output,0,64,float32,(4 4),inf,-inf,inf",
            "Conv2D,Default/Conv-op0,0,0,10,output,0,64,float32,(4 4),1.0,-1.0,3.0",
            "Mul,gradients/Mul-op3,3,0,40,output,0,64,float32,(4 4),0.0,0.0,1e-12",
        ],
    )
    assert rows(folder) == [
        (3, "Default/Log-op1", "nonfinite_module", True),
        (3, "Default/Add-op2", "nonfinite_module", False),
        (3, "gradients/Mul-op3", "gradient_vanishing", False),
    ]


def test_counts_of_mindspore(tmp_path: Path) -> None:
    header = HEADER + ",NaN Count,Negative Inf Count,Positive Inf Count"
    folder = mindspore(tmp_path, ["Log,Log-op1,1,0,1,output,0,64,float32,(4 4),5.0,-1.0,9.0,2,0,1"], header)
    (row,) = hr.check_dump(folder).rows()
    assert "3 of 16" in row["says"]


def msprobe(folder: Path, data: dict[str, Any], step: int = 0, rank: int = 0) -> Path:
    where = folder / f"step{step}" / f"rank{rank}"
    where.mkdir(parents=True)
    (where / "dump.json").write_text(json.dumps({"task": "statistics", "level": "mix", "data": data}))
    return folder


def tensor(value: Any, norm: Any = None, shape: tuple[int, ...] = (4, 4)) -> dict[str, Any]:
    figures = {"Max": value, "Min": value, "Mean": value, "Norm": value if norm is None else norm}
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape), **figures}


def test_the_first_module_of_msprobe(tmp_path: Path) -> None:
    nan = float("nan")
    folder = msprobe(
        tmp_path,
        {
            "Module.conv.Conv2d.forward.0": {
                "input_args": [tensor(1.0)],
                "input_kwargs": {},
                "output": [tensor(2.0)],
            },
            "Module.head.Linear.forward.0": {"input_args": [tensor(2.0)], "output": [tensor(nan)]},
            "Module.loss.Loss.forward.0": {
                "input_args": [tensor(nan), {"type": "int", "value": 3}],
                "output": [tensor(nan)],
            },
            "Module.head.Linear.backward.0": {"input": [tensor(1.0)], "output": [tensor(1e-20, 1e-20)]},
        },
        step=7,
        rank=2,
    )
    assert rows(folder) == [
        (7, "Module.head.Linear.forward.0", "nonfinite_module", True),
        (7, "Module.loss.Loss.forward.0", "nonfinite_module", False),
        (7, "Module.head.Linear.backward.0", "gradient_vanishing", False),
    ]
    assert {row["rank"] for row in hr.check_dump(folder).rows()} == {2}


def test_a_sound_dump_and_magnitudes(tmp_path: Path) -> None:
    folder = msprobe(tmp_path, {"a.forward.0": {"input_args": [], "output": [tensor(70000.0)]}})
    table = hr.check_dump(folder)
    assert len(table) == 0
    assert table.notes == ["nothing is wrong with the dumped tensors"]
    assert rows(folder, largest=65504) == [(0, "a.forward.0", "explosion", False)]


def test_figures_that_a_dump_leaves_out_are_no_finding(tmp_path: Path) -> None:
    empty = {"type": "torch.Tensor", "shape": [0], "Max": None, "Min": None, "Mean": None, "Norm": None}
    assert rows(msprobe(tmp_path, {"a.forward.0": {"output": [empty, tensor(1.0)]}})) == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"data": {"a": 3}}', '{"data": {"a": {"output": [{"shape": "x", "Max": 1}]}}}']
)
def test_damaged_files_are_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "dump.json").write_text(text)
    with pytest.raises(hr.FormatError, match=r"dump\.json"):
        hr.check_dump(tmp_path)


LINE = "Add,op1,1,0,10,output,0,64,float32,(4 4),1.0,-1.0,2.0"
COUNTS = HEADER + ",NaN Count"
GRADIENT = LINE.replace("op1", "gradients/op1")


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2",
        f"{HEADER}\n{LINE}\0",
        f"{HEADER}\nAdd,op1",
        f"{HEADER}\n{LINE.replace('op1', 'x' * 200_000)}",
        f"{HEADER}\n{LINE.replace('10,output', 'ten,output')}",
        f"{HEADER}\n{LINE.replace('2.0', 'two')}",
        f"{HEADER}\n{GRADIENT.replace('(4 4)', '9' * 400)}",
        f"{HEADER}\n{GRADIENT.replace('(4 4)', '9' * 5000)}",
        f"{HEADER}\n{GRADIENT.replace('(4 4)', '99999 ' * 400)}",
        f"{COUNTS}\n{LINE},inf",
        f"{COUNTS}\n{LINE},nan",
        b"\xff\xfe" + HEADER.encode("utf-16-le"),
    ],
)
def test_damaged_statistics_are_one_line(tmp_path: Path, text: str | bytes) -> None:
    (tmp_path / "statistic.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    csv.field_size_limit(131_072)  # a library that another test imports may have raised it
    with pytest.raises(hr.FormatError, match=r"statistic\.csv") as raised:
        hr.check_dump(tmp_path)
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "damage",
    [
        *({"shape": one} for one in ([10**400], [float("inf")], [float("nan")], [-1], [[1]], None, "abc")),
        *({"Max": one} for one in ([1], "abc", {}, 10**400)),
        {"Norm": 10**400},
    ],
)
def test_damaged_tensors_are_one_line(tmp_path: Path, damage: dict[str, Any]) -> None:
    msprobe(tmp_path, {"a.backward.0": {"output": [tensor(1.0) | damage]}})
    with pytest.raises(hr.FormatError, match=r"dump\.json"):
        hr.check_dump(tmp_path)


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000])
def test_a_step_that_no_program_counts_to_is_one_line(tmp_path: Path, number: str) -> None:
    where = tmp_path / f"step{number[:200]}"
    where.mkdir()
    (where / "dump.json").write_text(json.dumps({"data": {"a": {"output": [tensor(float("nan"))]}}}))
    with pytest.raises(hr.FormatError):
        hr.check_dump(tmp_path)


def test_names_that_are_no_text_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(
        json.dumps({"data": {"a\ud800\x1b[31m": {"output": {"\udc80": tensor(float("nan"))}}}})
    )
    (row,) = hr.check_dump(tmp_path).rows()
    assert (row["operator"], row["tensor"]) == ("a??[31m", "output ?")


def test_no_dump_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(hr.Error, match="no dump"):
        hr.check_dump(tmp_path)


def test_the_check_of_a_dump(tmp_path: Path) -> None:
    folder = msprobe(
        tmp_path, {"a.forward.0": {"input_args": [tensor(1.0)], "output": [tensor(float("inf"))]}}
    )
    command = [sys.executable, "-m", "headrace", "check", str(folder), "--no-faults"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "a.forward.0" in done.stdout
    assert "begins here" in done.stdout
