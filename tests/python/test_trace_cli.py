"""``headrace trace``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from device_traces import TraceWriter, two_steps
from headrace.show.cli import main


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["trace", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_summary_fits_on_a_screen(tmp_path: Path) -> None:
    for rank in (0, 1):
        two_steps(rank, late=300 * rank).write(tmp_path / f"{rank}.json")
    status, out, _ = run(str(tmp_path))
    assert status == 0
    assert len(out.splitlines()) <= 40
    assert max(map(len, out.splitlines())) <= 200
    assert "ncclDevKernel_AllReduce" in out
    assert "rank 1 comes last to its collectives in 2 of 2 steps" in out


def test_a_trace_without_a_device_says_what_it_can(tmp_path: Path) -> None:
    path = TraceWriter().host("cpu_op", "aten::mm", 0, 10).write(tmp_path / "a.json")
    status, out, _ = run(str(path))
    assert status == 0
    assert "no work on a device" in out
    assert "whole trace counts as step 0" in out
    assert "operators of the host, by their own time: 1 name" in out
    assert "aten::mm" in out


def test_a_trace_of_another_tool_shows_its_longest_names(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "toplevel", "name": name, "pid": "main", "tid": "t", "ts": ts, "dur": dur}
        for name, ts, dur in (("parse", 1, 2), ("draw", 4, 20), ("parse", 30, 1))
    ]
    (tmp_path / "a.json").write_text(json.dumps(events))
    status, out, _ = run(str(tmp_path / "a.json"))
    assert status == 0
    assert "no category of PyTorch's profiler" in out
    lines = out.splitlines()
    assert lines[-2].split() == ["87.0", "%", "20", "us", "1", "x", "draw"]
    assert lines[-1].split() == ["13.0", "%", "3", "us", "2", "x", "parse"]


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").touch()
    status, out, err = run(str(tmp_path / "a.json.gz"))
    assert (status, out) == (1, "")
    assert "there is nothing in it" in err


def test_tables_in_every_format(tmp_path: Path) -> None:
    path = str(two_steps(0).write(tmp_path / "a.json"))
    status, out, _ = run(path, "--table", "kernels")
    assert status == 0
    assert "gemm" in out
    rows = json.loads(run(path, "--table", "kernels", "--format", "json")[1])
    assert {row["name"] for row in rows} == {"gemm", "ncclDevKernel_AllReduce"}
    table = list(csv.DictReader(io.StringIO(run(path, "--table", "kernels", "--format", "csv")[1])))
    assert [row["name"] for row in table] == [row["name"] for row in rows]


def test_a_table_of_one_rank_says_so(tmp_path: Path) -> None:
    for rank in (2, 3):
        two_steps(rank).write(tmp_path / f"{rank}.json")
    status, _, err = run(str(tmp_path), "--table", "device_idle")
    assert status == 0
    assert "rank 2 only" in err
    assert "only" not in run(str(tmp_path), "--table", "device_idle", "--rank", "3")[2]


def test_equally_late_ranks_name_nobody(tmp_path: Path) -> None:
    for rank in (0, 1):
        two_steps(rank).write(tmp_path / f"{rank}.json")
    assert "comes last" not in run(str(tmp_path))[1]


def test_one_rank(tmp_path: Path) -> None:
    for rank in (0, 1):
        two_steps(rank).write(tmp_path / f"{rank}.json")
    rows = json.loads(run(str(tmp_path), "--rank", "1", "--table", "time_breakdown", "--format", "json")[1])
    assert [row["rank"] for row in rows] == [1]


def test_describe_says_how_to_read_the_columns_of_a_table(tmp_path: Path) -> None:
    path = str(two_steps(0).write(tmp_path / "a.json"))
    code, text, _ = run(path, "--table", "overlap", "--describe")
    assert code == 0
    (line,) = [line for line in text.splitlines() if line.startswith("overlap_s ")]
    assert line.split() == ["overlap_s", "s", "Both", "ran."]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["nowhere.json"], 1, "nowhere.json"),
        ([], 2, "PATH"),
        (["{trace}", "--format", "json"], 2, "--table NAME"),
        (["{trace}", "--describe"], 2, "--table NAME"),
        (["{trace}", "--table", "nothing"], 2, "nothing"),
        (["{trace}", "--rank", "9"], 2, "no trace of rank 9"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: list[str], status: int, says: str) -> None:
    path = two_steps(0).write(tmp_path / "a.json")
    code, _, err = run(*(argument.format(trace=path) for argument in arguments))
    assert code == status
    assert says in err
    assert len(err.strip().splitlines()) == 1
