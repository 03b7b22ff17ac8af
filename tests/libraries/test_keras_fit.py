"""``model.fit`` on a dataset of tf.data: the verdict of a loop over it, and the weights of a bare fit."""

import json
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from stored_reports import StoredReports

pytest.importorskip("tensorflow", reason="tensorflow is not installed (make tensorflow)")
pytest.importorskip("keras", reason="Keras is not installed (make integrations)")

SCRIPT = """
    import json, os, time
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")
    import keras, tensorflow as tf
    keras.utils.set_random_seed(7)

    def sleeping(item):
        time.sleep({map_s})
        return item

    def decode(item):
        item = tf.ensure_shape(tf.numpy_function(sleeping, [item], tf.int64), ())
        return tf.cast(tf.stack([item % 7, item % 5]), tf.float32), tf.cast(item % 3, tf.float32)

    def numbers():
        yield from range(320)

    signature = tf.TensorSpec((), tf.int64)
    numbers = {source}
    dataset = numbers.map(decode, num_parallel_calls=1).batch(8).prefetch(2)

    class Step(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep({step_s})

    model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dropout(0.3), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-3), "mse", steps_per_execution={steps})
    callbacks = [Step()]
    {callback}
    history = model.fit(dataset, epochs=2, verbose=0, callbacks=callbacks, validation_data=dataset.take(3))
    logs = {{name: values for name, values in history.history.items() if not name.startswith("headrace/")}}
    weights = [weight.tolist() for weight in model.get_weights()]
    print(json.dumps([weights, logs, model.evaluate(dataset.take(2), verbose=0)]))
"""
RANGE = "tf.data.Dataset.range(320)"
GENERATOR = "tf.data.Dataset.from_generator(numbers, output_signature=signature)"


def run(folder: Path, *command: str, **values: Any) -> str:
    values = {"source": RANGE, "map_s": 0.004, "step_s": 0.002, "steps": 1, "callback": "pass", **values}
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT).format(**values))
    result = subprocess.run(
        [sys.executable, *command, "script.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(("source", "steps"), [(RANGE, 1), (GENERATOR, 1), (GENERATOR, 3)])
def test_under_headrace_run(tmp_path: Path, source: str, steps: int) -> None:
    bare = run(tmp_path, source=source, steps=steps)
    recorded = run(tmp_path, "-m", "headrace", "run", "--out", "seen", source=source, steps=steps)
    assert json.loads(recorded.splitlines()[-1]) == json.loads(bare.splitlines()[-1])
    report = hr.Report.load(tmp_path / "seen")
    assert report.loader.startswith("PrefetchDataset at script.py:")
    assert (report.profile.epochs, report.profile.sink.steps) == (2, 80)


@pytest.mark.parametrize(
    ("times", "expected"),
    [({}, ("input_bound", "decode")), ({"map_s": 0.0005, "step_s": 0.03}, ("not_input_bound", None))],
    ids=["slow map", "slow step"],
)
def test_verdict(
    times: dict[str, float], expected: tuple[str, str | None], tmp_path: Path, stored: StoredReports
) -> None:
    def play() -> hr.Report:
        run(tmp_path, "-m", "headrace", "run", "--out", "seen", **times)
        return hr.Report.load(tmp_path / "seen")

    said = stored(play).diagnosis
    assert (said.kind, said.operator) == expected
    if said.operator:
        assert said.advice[0].parameter == "decode.num_parallel_calls"


def test_with_the_callback(tmp_path: Path) -> None:
    bare = run(tmp_path)
    callback = (
        "from headrace.integrations.keras import HeadraceCallback; "
        "callbacks.append(HeadraceCallback('seen')); keras.config.disable_interactive_logging()"
    )
    assert run(tmp_path, callback=callback) == bare
    found = [
        hr.Report.load(tmp_path / "seen", loader=name) for name in hr.Report.load(tmp_path / "seen").loaders
    ]
    said = {report.loader.partition(" ")[0]: report for report in found}
    assert set(said) == {"PrefetchDataset", "TakeDataset"}  # evaluate has no callback: it is not recorded
    assert said["TakeDataset"].profile.sink.steps == 6
    assert "decode" in [op.name for op in said["PrefetchDataset"].profile.operators]


def test_another_version_of_keras_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from headrace.loaders.tfdata import TfDataAdapter, keras_fit

    monkeypatch.setitem(sys.modules, keras_fit.TRAINER, types.SimpleNamespace(TensorFlowTrainer=object))
    for _ in range(2):
        keras_fit.install(TfDataAdapter())
    assert caplog.text.count("operator detail unavailable: keras changed make_train_function") == 1
