"""Keras' PyDataset on torch: in the loop, in threads and in processes of its own."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from recorded_loops import operators, run_script
from stored_reports import StoredReports

pytest.importorskip("torch", reason="PyTorch is not installed")
if importlib.util.find_spec("keras") is None:
    pytest.skip("keras is not installed", allow_module_level=True)

SCRIPT = """
import os, sys, time
os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np

def decode(index):
    time.sleep(0.03)
    return np.full((4, 2), float(index), "float32")

class Images(keras.utils.PyDataset):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.seen = []

    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 30 and sys.argv[3:] == ["broken"]:
            raise ValueError("no such label")
        return decode(index), np.zeros((4, 1), "float32")

class Step(keras.callbacks.Callback):
    def on_train_batch_end(self, *_, **__):
        time.sleep(0.004)

class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, batch):
        return self.dense(batch)

    def train_step(self, data):
        print("batch", float(data[0][0, 0]))
        return {"loss": 0.0}

if __name__ == "__main__":
    model = Model()
    model.compile("sgd", "mse")
    data = Images(workers=int(sys.argv[1]), use_multiprocessing=sys.argv[2] == "process")
    try:
        model.fit(data, epochs=2, verbose=0, shuffle=False, callbacks=[Step()])
    except ValueError as error:
        print(error)
"""


def batches_of(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if line.startswith(("batch", "no such"))]


@pytest.mark.parametrize("runs_in", ["thread", "process"])
def test_what_its_workers_run_is_recorded(tmp_path: Path, stored: StoredReports, runs_in: str) -> None:
    report = stored(lambda: run_script(tmp_path, SCRIPT, "2", runs_in)[1])
    images = operators(report)["Images"]
    assert images.workers == 2
    assert images.service.p50_s > 0.027
    assert report.diagnosis.operator == "Images", str(report)
    assert report.diagnosis.cause == "too_few_workers"
    first = report.diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("workers", 2)
    assert first.predicted_step_s < report.profile.sink.step_s
    assert any("decode" in function.name for function in images.functions), str(report)


def test_one_worker_is_the_loop_itself(tmp_path: Path, stored: StoredReports) -> None:
    report = stored(lambda: run_script(tmp_path, SCRIPT, "1", "thread")[1])
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("Images", "no_overlap"), str(report)
    first = report.diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("workers", 1)
    assert first.to > 1


@pytest.mark.parametrize("arguments", [("2", "thread"), ("2", "process"), ("2", "thread", "broken")])
def test_batches_and_errors_are_those_of_the_bare_loop(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    recorded, _ = run_script(tmp_path, SCRIPT, *arguments)
    bare = subprocess.run(
        [sys.executable, tmp_path / "train.py", *arguments], capture_output=True, text=True, timeout=120
    )
    assert batches_of(recorded) == batches_of(bare.stdout) != []
