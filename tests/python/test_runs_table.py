"""The table of a folder's runs: parameters, figures, and what the step depends on."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from headrace.results import script_parameters
from headrace.results.importance import importances
from headrace.results.runs_table import runs_of

SCRIPT = """
import sys, time
import headrace as hr
hr.params(model="resnet", api_key="s3cret")
for item in hr.wrap([0] * 8, name="train"):
    time.sleep(float(sys.argv[2]) / 1000)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    for name, step in (("a", "1"), ("b", "20")):
        command = [
            sys.executable,
            "-m",
            "headrace",
            "run",
            "--out",
            f"runs/{name}",
            str(script),
            "--ms",
            step,
            "--amp",
        ]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    return tmp_path / "runs"


def command(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "headrace", "runs", str(folder), *options]
    return subprocess.run(line, capture_output=True, text=True, timeout=60)


def test_a_row_a_run(folder: Path) -> None:
    table = hr.runs(folder)
    rows = {row["run"]: row for row in table.rows()}
    assert set(rows) == {"a", "b"}
    assert rows["a"]["p.ms"] == "1"
    assert rows["a"]["p.amp"] == "True"
    assert rows["b"]["p.model"] == "resnet"
    assert rows["b"]["step_s"] > rows["a"]["step_s"] > 0
    assert rows["a"]["loader"] == "train"
    assert not any("key" in name for name in table.columns)
    assert "s3cret" not in "".join(path.read_text() for path in folder.glob("*/*.json"))


def test_the_command(folder: Path) -> None:
    assert command(folder, "--where", "ms=20", "--format", "csv").stdout.splitlines()[1].startswith("b,")
    ordered = json.loads(command(folder, "--sort", "-step_s", "--format", "json").stdout)
    assert [row["run"] for row in ordered] == ["b", "a"]
    assert [row["run"] for row in json.loads(command(folder, "--sort", "ms", "--format", "json").stdout)] == [
        "a",
        "b",
    ]
    for wrong in (("--sort", "nothing"), ("--where", "nothing=1"), ("--where", "ms")):
        done = command(folder, *wrong)
        assert done.returncode == 2 or done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
    assert command(folder / "none").returncode == 1


def test_runs_that_cannot_be_read_are_said(folder: Path) -> None:
    (folder / "a" / "rank0.hrseg").write_bytes(b"no segment")
    found = runs_of(folder)
    assert [row.run for row in found.rows if row.problem] == ["a"]
    assert any("a:" in note for note in found.table().notes)


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"lr": {"x": 1}}', b"\xff"])
def test_damaged_parameters_are_none(folder: Path, damage: bytes) -> None:
    (folder / "a" / "rank0.params.json").write_bytes(damage)
    assert {row["run"] for row in hr.runs(folder).rows()} == {"a", "b"}


def test_options_of_a_command_line() -> None:
    line = [
        "--lr",
        "0.1",
        "-b=4",
        "--amp",
        "--name=a b",
        "data.path=/x",
        "file.txt",
        "--api-key",
        "k",
        "--neg",
        "-3",
    ]
    found = script_parameters.of_command_line(line)
    assert found == {"lr": "0.1", "b": "4", "amp": "True", "name": "a b", "data.path": "/x", "neg": "-3"}


def test_secrets_inside_of_values() -> None:
    kept = script_parameters.cleaned(
        {
            "cfg": {"db": {"password": "s3cret"}},
            "config": '{"api_key": "s3cret"}',
            "dsn": "postgres://me:s3cret@host/db",
            "pw": "s3cret",
            "authToken": "s3cret",
            "aws-secret-access-key": "s3cret",
            "max_tokens": 512,
            "tokenizer": "bpe",
            "passes": 3,
            "monkey": 1,
        }
    )
    assert "s3cret" not in str(kept)
    assert (kept["max_tokens"], kept["tokenizer"], kept["passes"], kept["monkey"]) == ("512", "bpe", "3", "1")


def test_faults_of_runs_that_nobody_watched_are_not_known(folder: Path) -> None:
    assert all(math.isnan(row["faults"]) for row in hr.runs(folder).rows())


def test_params_without_recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import headrace as hr; hr.params(lr=1)"],
        cwd=tmp_path,
        env={"HEADRACE": "0", "PATH": ""},
        capture_output=True,
    )
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


# --- importance ---


def grid(number: int, effect: float, seed: int) -> tuple[list[dict[str, str]], list[float]]:
    """Runs in which only the number of workers matters."""
    rng = random.Random(seed)
    runs = [
        {
            "workers": str(2 ** (k % 4)),
            "lr": str(rng.choice((0.1, 0.2, 0.4))),
            "batch": str(8 << rng.randrange(3)),
        }
        for k in range(number)
    ]
    return runs, [math.exp(-effect * math.log(int(one["workers"])) + rng.gauss(0, 0.1)) for one in runs]


def test_the_share_is_that_of_a_hand_calculation() -> None:
    values = [{"x": "a"}, {"x": "a"}, {"x": "a"}, {"x": "b"}, {"x": "b"}, {"x": "b"}, {"x": "b"}]
    steps = [math.e**k for k in (0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 13.0)]
    (found,) = importances(values, steps)
    # Means 1 and 11.5 of 7; between 3 (1 - 7)^2 + 4 (11.5 - 7)^2 = 189; within 2 + 5.
    assert found.share == pytest.approx(189 / 196)
    assert found.ratio == pytest.approx(math.exp(10.5))
    assert (found.worst, found.best) == ("b", "a")
    assert found.says.startswith("x b -> a: ")


@pytest.mark.parametrize("seed", range(5))
def test_only_what_matters_is_said(seed: int) -> None:
    assert [one.parameter for one in importances(*grid(24, 0.7, seed))] == ["workers"]


def test_noise_is_not_said() -> None:
    said = [importances(*grid(number, 0.0, seed)) for seed in range(10) for number in (4, 8, 16)]
    assert sum(bool(one) for one in said) <= 2


def test_few_runs_say_nothing() -> None:
    assert importances(*grid(4, 2.0, 0)) == []


def test_many_numbers_are_put_into_groups() -> None:
    runs = [{"lr": str(k / 10)} for k in range(1, 33)]
    (found,) = importances(runs, [1.0 if k < 16 else 3.0 for k in range(32)])
    assert found.ratio == pytest.approx(3.0)
    assert " to " in found.worst


def test_a_name_of_its_own_for_each_run_says_nothing() -> None:
    runs = [{"seed": f"s{k}", "fixed": "1"} for k in range(9)]
    assert importances(runs, [1.0 + k for k in range(9)]) == []


def test_the_page_of_parameters(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    from headrace.show.view.parameters import parameters_page

    for name, lr in (("a<b>", "0.1"), ("c", "0.2")):
        loader = hr.wrap([0] * 20, run=tmp_path / name)
        for _ in loader:
            pass
        script_parameters.write(str(tmp_path / name), 0, {"lr": lr, "note": "<script>"})
    page = parameters_page(runs_of(tmp_path), "-lr")
    assert page.count("<polyline") == 2
    assert "<script>" not in page
    assert page.index("/run/c") < page.index("/run/a%3Cb%3E")
    assert "?sort=lr" in page
