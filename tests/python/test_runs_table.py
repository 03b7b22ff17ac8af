"""The table of a folder's runs: parameters, figures, and what the step depends on."""

import json
import math
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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
        words = f"-m headrace run --out runs/{name} train.py --ms {step} --amp".split()
        command = [sys.executable, *words]
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
    assert rows["b"]["p.api_key"] == script_parameters.HIDDEN
    assert "s3cret" not in "".join(path.read_text() for path in folder.glob("*/*.json"))


def test_the_command(folder: Path) -> None:
    assert command(folder, "--where", "ms=20", "--format", "csv").stdout.splitlines()[1].startswith("b,")
    assert "no run has ms=7" in command(folder, "--where", "ms=7").stdout
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


def test_a_pipe_gets_whole_columns_with_their_units(folder: Path) -> None:
    long = folder / "sweeps" / ("a-name-that-no-terminal-has-room-for-" * 5)
    shutil.copytree(folder / "a", long)
    lines = command(folder).stdout.splitlines()
    assert str(long.relative_to(folder)) in "".join(lines)  # at any depth
    assert "  samples per second" in lines[0]
    assert "wait share" in lines[0]
    (folder / "none").mkdir()
    assert "at any depth" in command(folder / "none").stdout


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
        "--name=ab",
        "--text=a b",
        "data.path=/x",
        "file.txt",
        "--api-key",
        "k",
        "--neg",
        "-3",
    ]
    found = script_parameters.of_command_line(line)
    hidden = {"text": script_parameters.HIDDEN, "api_key": script_parameters.HIDDEN}
    shown = {"lr": "0.1", "b": "4", "amp": "True", "name": "ab", "data.path": "/x", "neg": "-3"}
    assert found == shown | hidden


LONG = "b7Kq02mXz4Wc8Yt1Rp6Ls3Vd"  # as generated tokens look
NAMES = """
key api-key apikey wandb-key openai-key account-key accessKeyId AWS_SECRET_ACCESS_KEY ssh-key private_key
token hftoken hf_token token-id secret client-secret password passwd pass pw db.passwd passcode passphrase
seed-phrase mnemonic auth oauth authToken authorization bearer jwt cookie cookies session-id credential
credentials creds header headers http-header hook webhook slack_hook conn connection-string dsn pem cert
sas sig signature pat pin otp salt
"""
SECRETS = {
    # By name, whatever the value is.
    **{f"--{name}": "S3CRET" for name in NAMES.split()},
    "--pin": "1234",
    # By value, under names that say nothing.
    "--a": "Authorization: Bearer S3CRET",
    "--b": "Bearer S3CRET",
    "--c": "AccountName=a;AccountKey=S3CRET",
    "--d": '{"key": "S3CRET"}',
    "--e": "hf_S3CRET",
    "--f": "ghp_S3CRET",
    "--g": "github_pat_S3CRET",
    "--h": "AKIAS3CRET",
    "--i": "sk-S3CRET",
    "--j": "xoxb-S3CRET",
    "--k": "glpat-S3CRET",
    "--l": "-----BEGIN PRIVATE KEY----- S3CRET",
    "--m": "https://me:S3CRET@host/data",
    "--n": "https://hooks.slack.com/services/T0/B0/S3CRET",
    "--o": "https://host/data?sig=S3CRET",
    "--q": "postgres://me:S3CRET@host/db",
    "--r": "user:S3CRET",
    "--s": "S3CRET!",
    "--t": "correct horse S3CRET",
    "--u": LONG,
    "--v": f"v1.{LONG}",
    "--w": "eyJS3CRET",
    "--x": "AIzaS3CRET",
    "--y": "key=S3CRET",
    "--z": "/home/me/S3CRET",
    "--aa": "550e8400-e29b-41d4-a716-S3CRET000000",
    "--ab": "qWeRtYuIoPaSdFgHjK",
    # Under names of paths.
    "--data": "s3://me:S3CRET@bucket/train",
    "--root": "https://host/a/b?token=S3CRET",
    "--dataset": "https://host/a#S3CRET",
    "--config": '{"wandb": {"key": "S3CRET"}}',
    "--output": f"/runs/{LONG}/x",
    "--path": "key=S3CRET/x",
    "--file": "password S3CRET",
    "--cache": "me:S3CRET@host:/x",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_not_kept(name: str) -> None:
    value = SECRETS[name]
    for line in ([name, value], [f"{name}={value}"], [f"{name[2:].replace('-', '_')}={value}"]):
        kept = script_parameters.of_command_line(line)
        assert len(kept) == 1, "its name is kept"
        said = str(kept)
        assert "S3CRET" not in said
        assert LONG not in said
        assert "qWeRtY" not in said
        assert "1234" not in said
        assert script_parameters.cleaned(kept) == kept, "what is read is as it was written"


@pytest.mark.parametrize(
    "given",
    [
        {"config": {"wandb": {"key": "S3CRET"}}},
        {"pairs": [("token", "S3CRET"), ("lr", 0.1)]},
        {"headers": {"x": "S3CRET"}},
        {"key": {"x": 7355608}},
        {"many": ["Bearer S3CRET", "hf_S3CRET"]},
        {"inside": [[["S3CRET"]]]},
        {f"named_{LONG}": 1},
        {"S3CRET value": 1},
        {"pass": 7355608},
        {"auth": ("me", "S3CRET")},
        {"an object": object(), "function": print},
    ],
)
def test_a_secret_inside_is_not_kept(given: dict[str, Any]) -> None:
    said = str(script_parameters.cleaned(given))
    assert not any(one in said for one in ("S3CRET", LONG, "7355608", "object at"))


SHOWN = {
    "lr": 0.1,
    "epochs": 90,
    "amp": True,
    "none": None,
    "wd": 1e-05,
    "seed": 2**63,
    "size": "224x224",
    "model": "resnet50",
    "backbone": "convnext_base.fb_in22k_ft_in1k",
    "opt": "adamw",
    "dtype": "torch.float32",
    "strategy": "DistributedDataParallel",
    "betas": "0.9,0.999",
    "devices": "[0, 1]",
    "shm": "8GB",
    "max_tokens": 512,
    "tokenizer": "bpe",
    "passes": 3,
    "monkey": 1,
    "pin_memory": True,
    "author_count": 2,
    "data": "/mnt/imagenet/train",
    "output_dir": "runs/a-1",
    "dataset.root": "s3://bucket/train/{00..99}.tar",
    "checkpoint": "https://host:8080/a/b.pt",
    "empty": "",
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_harmless_is_shown(name: str) -> None:
    kept = script_parameters.cleaned({name: SHOWN[name]})
    assert kept == {name: str(SHOWN[name])}
    assert script_parameters.cleaned(kept) == kept


def test_what_lies_inside_is_shown_by_its_name() -> None:
    kept = script_parameters.cleaned(
        {"optimizer": {"name": "sgd", "betas": [0.9, 0.99]}, "tags": ["a", "b c"]}
    )
    assert kept == {"optimizer.name": "sgd", "optimizer.betas": "0.9,0.99", "tags": "a,..."}


def test_odd_parameters_break_nothing(tmp_path: Path) -> None:
    class Raises:
        def __str__(self) -> str:
            raise ValueError("no text")

    itself: list[Any] = []
    itself += [itself, itself]
    nested: dict[str, Any] = {}
    nested |= {"a": nested, "b": nested}
    odd = {"raises": Raises(), "lone": "a\udc80b", "lone\udc80": 1, "itself": itself, "long": "x" * 10**6}
    kept = script_parameters.cleaned({**odd, "nested": nested, "int": 10**4000})
    script_parameters.write(str(tmp_path), 0, kept)
    assert script_parameters.read(tmp_path) == kept
    assert {kept[name] for name in ("raises", "lone", "long", "int")} == {script_parameters.HIDDEN}
    assert (tmp_path / "rank0.params.json").stat().st_mode & 0o777 == 0o600


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
