"""Callbacks of training frameworks: what they record, and where the verdict is said."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytest.importorskip("torch", reason="PyTorch is not installed")

DATASET = """
    import json, logging, sys, time, warnings
    import torch
    from torch.utils.data import DataLoader, Dataset
    warnings.filterwarnings("ignore")

    class Points(Dataset):
        def __init__(self, count=160, seconds=0.002):
            self.count, self.seconds = count, seconds
        def __len__(self):
            return self.count
        def __getitem__(self, index):
            time.sleep(self.seconds)
            x = torch.tensor([float(index), 1.0])
            return {"x": x, "labels": x.sum()}

    def say(reports):
        told = {}
        for what, one in reports.items():
            said = one.diagnosis
            told[what] = [said.kind, said.operator, said.cause, one.profile.sink.steps]
        print(json.dumps(told))
"""

LIGHTNING = """
    import lightning as L
    from dataset import *
    from headrace.integrations.lightning import HeadraceCallback

    class Line(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
        def loss(self, batch):
            return (self.layer(batch["x"]).squeeze(1) - batch["labels"]).pow(2).mean()
        def training_step(self, batch, index):
            return self.loss(batch)
        def validation_step(self, batch, index):
            self.loss(batch)
        test_step = validation_step
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-5)

    if __name__ == "__main__":
        callback = HeadraceCallback(run="run")
        logger = L.pytorch.loggers.CSVLogger("logs") if "log" in sys.argv else False
        trainer = L.Trainer(max_epochs=2, accelerator="cpu", logger=logger, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, callbacks=[callback])
        trainer.fit(Line(), DataLoader(Points(), batch_size=4, num_workers=1), DataLoader(Points(40)))
        trainer.test(Line(), DataLoader(Points(20)), verbose=False)
        say(callback.reports)
"""

TRANSFORMERS = """
    from dataset import *
    from transformers import Trainer, TrainingArguments
    from headrace.integrations.transformers import HeadraceCallback

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
        def forward(self, x, labels=None):
            out = self.layer(x).squeeze(1)
            return {"loss": (out - labels).pow(2).mean(), "logits": out}

    if __name__ == "__main__":
        callback = HeadraceCallback(run="run")
        arguments = TrainingArguments(
            "out", num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=1,
            use_cpu=True, report_to=[], save_strategy="no", eval_strategy="epoch", disable_tqdm=True,
            dataloader_num_workers=1, learning_rate=1e-5)
        trainer = Trainer(Line(), arguments, train_dataset=Points(), eval_dataset=Points(40),
                          callbacks=[callback])
        trainer.train()
        trainer.evaluate(Points(12))
        logged = [row for row in trainer.state.log_history if "headrace/train/step_seconds" in row]
        assert [row["epoch"] for row in logged] == [1, 2], trainer.state.log_history
        assert any("headrace/validation/wait_ratio" in row for row in trainer.state.log_history)
        say(callback.reports)
"""

KERAS = """
    import keras
    from dataset import *
    from headrace.integrations.keras import HeadraceCallback

    def pairs(batch):
        return tuple(torch.stack([one[key].reshape(-1) for one in batch]) for key in ("x", "labels"))

    if __name__ == "__main__":
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(1e-6), "mse")
        callback = HeadraceCallback()
        train = DataLoader(Points(), batch_size=4, num_workers=1, collate_fn=pairs)
        history = model.fit(train, validation_data=DataLoader(Points(40), collate_fn=pairs), epochs=2,
                            verbose=0, callbacks=[callback])
        model.evaluate(DataLoader(Points(20), collate_fn=pairs), verbose=0, callbacks=[callback])
        waits = history.history["headrace/train/wait_ratio"]
        assert len(waits) == 2 and min(waits) > 0.1, history.history
        assert set(history.history) == {"loss", "val_loss", *(f"headrace/{role}/{name}"
            for role in ("train", "validation")
            for name in ("exposed_wait_ratio", "wait_ratio", "starved_ratio", "step_seconds"))}
        say(callback.reports)
"""

ACCELERATE = """
    from accelerate import Accelerator
    from dataset import *
    from headrace.integrations.accelerate import log_verdicts

    if __name__ == "__main__":
        accelerator = Accelerator(cpu=True)
        verdicts = log_verdicts(accelerator, run="run")
        model = torch.nn.Linear(2, 1)
        model, train, held = accelerator.prepare(
            model, DataLoader(Points(), batch_size=4, num_workers=1), DataLoader(Points(40)))
        assert len(accelerator._dataloaders) == 2 and accelerator._dataloaders[0] is train
        for epoch in range(2):
            for batch in train:
                accelerator.backward((model(batch["x"]).squeeze(1) - batch["labels"]).pow(2).mean())
            for batch in held:
                pass
        say(verdicts.reports)
"""


INPUT_BOUND = r"headrace: train: exposed wait [^|]* \| input-bound: "


def run_script(folder: Path, script: str, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "dataset.py").write_text(textwrap.dedent(DATASET))
    (folder / "train.py").write_text(textwrap.dedent(script))
    done = subprocess.run(
        [sys.executable, *(command or ("train.py",))], cwd=folder, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def said_in(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith(('{"', "{}"))))


def need(library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


def test_lightning(tmp_path: Path) -> None:
    need("lightning")
    done = run_script(tmp_path, LIGHTNING, "train.py", "log")
    reports = said_in(done)
    assert set(reports) == {"train", "validation", "test"}
    assert (*reports["train"][:2], reports["train"][3]) == ("input_bound", "Points", 80)
    assert reports["validation"][3] >= 80
    assert reports["test"][3] == 20
    lines = [line for line in done.stderr.splitlines() if "headrace: " in line]
    assert [line.split("headrace: ")[1].split(":")[0] for line in lines].count("train") == 2
    assert "input-bound: " in next(line for line in lines if "headrace: train" in line)
    assert len(lines) == len(set(lines))
    (metrics,) = (tmp_path / "logs").rglob("metrics.csv")
    rows = list(csv.DictReader(metrics.read_text().splitlines()))
    header = set(rows[0])
    steps = [float(row["headrace/train/steps"]) for row in rows if row["headrace/train/steps"]]
    assert steps == [40, 40]  # of each epoch
    assert "headrace/train/wait_ratio" in header
    assert "headrace/validation/step_seconds" in header
    assert "headrace/train/operator_demand_seconds/Points" in header


def test_ranks_that_lightning_launches(tmp_path: Path) -> None:
    need("lightning")
    script = LIGHTNING.replace('accelerator="cpu",', 'accelerator="cpu", devices=2, strategy="ddp",')
    script = script.replace("trainer.test(", "0 and trainer.test(")
    done = run_script(tmp_path, script)
    report = hr.Report.load(tmp_path / "run")
    assert report.ranks == [0, 1]
    train = next(name for name in report.loaders if name.startswith("Points (train)"))
    for rank in range(2):
        assert hr.Report.load(tmp_path / "run", train, rank).profile.sink.steps == 40
    assert done.stderr.count("headrace: train: ") == 2  # rank 0 only


def test_the_trainer_of_transformers(tmp_path: Path) -> None:
    need("transformers")
    done = run_script(tmp_path, TRANSFORMERS)
    reports = said_in(done)
    after = next(name for name in reports if name.startswith("Points (validation) at train.py:"))
    assert set(reports) == {"train", "validation", after}
    assert (*reports["train"][:2], reports["train"][3]) == ("input_bound", "Points", 80)
    assert reports["validation"][3] == 40  # the trainer makes this loader anew for each evaluation
    assert reports[after][3] == 12
    assert len(re.findall(INPUT_BOUND, done.stderr)) == 2


def test_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("keras")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    done = run_script(tmp_path, KERAS)
    reports = said_in(done)
    assert {what: one[3] for what, one in reports.items()} == {"train": 80, "validation": 80, "test": 20}
    assert reports["train"][:2] == ["input_bound", "Points"]
    assert len(re.findall(INPUT_BOUND, done.stdout)) == 2
    assert done.stdout.count("headrace: ") == 5


KERAS_DATASET = """
    import time
    import keras, numpy
    from dataset import *
    import headrace as hr

    class Images(keras.utils.PyDataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            time.sleep(0.02)
            return numpy.zeros((4, 2), "float32"), numpy.zeros((4, 1), "float32")

    if __name__ == "__main__":
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        for workers in (1, 2):
            model.fit(Images(workers=workers), epochs=2, verbose=0)
"""


def test_keras_own_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("keras")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    run = tmp_path / "recorded"
    run_script(tmp_path, KERAS_DATASET, "-m", "headrace", "run", "--out", str(run), "train.py")
    in_loop, threads = (hr.Report.load(run, loader=name) for name in hr.Report.load(run).loaders)
    assert in_loop.profile.epochs == 3  # one batch tells the shapes
    found = in_loop.diagnosis
    assert (found.operator, found.cause) == ("Images", "no_overlap"), str(in_loop)
    assert (found.advice[0].parameter, found.advice[0].from_) == ("workers", 1)
    assert found.advice[0].to > 1
    assert threads.profile.operators[0].workers == 2, str(threads)
    assert threads.diagnosis.cause in ("too_few_workers", None)


DISPATCHED = """
    import time
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration
    from dataset import *
    from torch.utils.data import IterableDataset

    class Stream(IterableDataset):
        def __iter__(self):
            for number in range(480):
                time.sleep(0.002)
                yield torch.full((4,), float(number))

    if __name__ == "__main__":
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=True))
        options = {"batch_size": 4, "num_workers": 1, "persistent_workers": True}
        loader = accelerator.prepare(DataLoader(Stream(), **options))
        rank = accelerator.process_index
        for epoch in range(2):
            rows = []
            for batch in loader:
                rows += batch[:, 0].tolist()
                time.sleep(0.002)
            assert rows == [float(n) for n in range(480) if n % 8 // 4 == rank], rows[:9]
        accelerator.end_training()
"""


def test_batches_that_rank_0_makes_for_all_ranks(tmp_path: Path) -> None:
    need("accelerate")
    run = tmp_path / "recorded"
    options = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    run_script(tmp_path, DISPATCHED, "-m", "headrace", "run", "--out", str(run), *options, "train.py")
    first, second = (hr.Report.load(run, rank=rank) for rank in (0, 1))
    for report in (first, second):
        assert (report.profile.sink.steps, report.profile.epochs) == (120, 2), str(report)
        assert report.profile.sink.step_s > 0.015  # two batches of four rows
        assert report.diagnosis.kind == "input_bound"
    assert (first.diagnosis.operator, first.diagnosis.cause) == ("Stream", "too_few_workers"), str(first)
    stream = next(one for one in first.profile.operators if one.name == "Stream")
    assert (stream.items, stream.items_per_batch) == (960, 8)
    assert second.diagnosis.operator is None
    assert "rank 0, which makes the batches of all ranks" in second.diagnosis.summary


RAY = """
    import os
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer
    from headrace.integrations.ray import recorded

    def train_loop(config):
        from dataset import DataLoader, Points
        from headrace.integrations.ray import epoch
        loader = DataLoader(Points(), batch_size=4, num_workers=1)
        for _ in range(2):
            for batch in loader:
                pass
            figures = epoch()
            assert config == {"lr": 1} and any(name.endswith("/step_seconds") for name in figures), figures

    if __name__ == "__main__":
        ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": os.getcwd()}})
        workers = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5})
        TorchTrainer(recorded(train_loop), train_loop_config={"lr": 1}, scaling_config=workers,
                     run_config=RunConfig(storage_path=os.getcwd(), name="trial")).fit()
"""


def test_ray_train(tmp_path: Path) -> None:
    need("ray")
    pytest.importorskip("ray.train.torch", reason="needs ray[train]")
    done = run_script(tmp_path, RAY)
    recorded = hr.Report.load(tmp_path / "trial" / "headrace")
    assert recorded.ranks == [0, 1]
    assert (recorded.profile.sink.steps, recorded.profile.epochs) == (80, 2)
    assert (recorded.diagnosis.kind, recorded.diagnosis.operator) == ("input_bound", "Points")
    said = re.findall(r"headrace: Points.*input-bound: ", done.stdout + done.stderr)
    assert len(said) == 2  # after each epoch, by rank 0


def test_accelerate(tmp_path: Path) -> None:
    need("accelerate")
    done = run_script(tmp_path, ACCELERATE)
    reports = said_in(done)
    assert sorted(one[3] for one in reports.values()) == [80, 80]
    assert {one[1] for one in reports.values()} == {"Points"}
    assert done.stderr.count("headrace: ") == 4


@pytest.mark.parametrize(
    ("library", "script"),
    [("lightning", LIGHTNING), ("transformers", TRANSFORMERS), ("accelerate", ACCELERATE)],
    ids=["lightning", "transformers", "accelerate"],
)
def test_headrace_run_says_the_same(tmp_path: Path, library: str, script: str) -> None:
    need(library)
    done = run_script(tmp_path, script, "-m", "headrace", "run", "--out", "recorded", "train.py")
    by_callback = said_in(done)
    assert not (tmp_path / "run").exists()
    recorded = hr.Report.load(tmp_path / "recorded")
    assert recorded.diagnosis.operator == "Points"
    loaders = [hr.Report.load(tmp_path / "recorded", loader=name) for name in recorded.loaders]
    found = [
        (one.diagnosis.kind, one.diagnosis.operator, one.diagnosis.cause, one.profile.sink.steps)
        for one in loaders
    ]
    # Verdicts of loaders with few steps are not the same in every run of a busy machine.
    told = {tuple(one) for one in by_callback.values()}
    assert {one for one in found if one[3] >= 80} == {one for one in told if one[3] >= 80}
    assert {one[3] for one in found} == {one[3] for one in told}


def test_headrace_0_records_nothing(tmp_path: Path) -> None:
    need("lightning")
    (tmp_path / "dataset.py").write_text(textwrap.dedent(DATASET))
    (tmp_path / "train.py").write_text(textwrap.dedent(LIGHTNING))
    done = subprocess.run(
        ["env", "HEADRACE=0", sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert said_in(done) == {}
    assert not (tmp_path / "run").exists()
