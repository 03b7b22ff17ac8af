"""tf.data: datasets under their user's names, tuned values and verdicts, from the autotuner's model."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import assert_seen_from_outside, consume, operators, outcome, played, run_script
from stored_reports import StoredReports

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed (make tensorflow)")

from headrace.loaders import tfdata  # noqa: E402

pytestmark = pytest.mark.usefixtures("run")


def sleeping(seconds: float) -> Callable[[Any], Any]:
    def sleep(item: Any) -> Any:
        time.sleep(seconds)
        return item

    def decode(item: Any) -> Any:
        return tf.numpy_function(sleep, [item], tf.int64)

    return decode


def dataset_of(seconds: float = 0.0, calls: int | None = 2, ahead: int | None = 2, count: int = 320) -> Any:
    dataset = tf.data.Dataset.range(count).map(sleeping(seconds), num_parallel_calls=calls).batch(8)
    return dataset if ahead is None else dataset.prefetch(ahead)


def plain(batches: list[Any]) -> list[Any]:
    return [batch.numpy().tolist() for batch in batches]


def test_datasets_have_their_users_names() -> None:
    loader = hr.wrap(dataset_of(0.002))
    batches = plain(consume(loader, 0.001))
    assert [number for batch in batches for number in batch] == list(range(320))
    report = loader.report()
    shown = [(op.name, op.kind, op.workers) for op in report.profile.operators]
    assert shown == [("range", "source", 1), ("decode", "map", 2), ("batch(8)", "batch", 1)]
    found = operators(report)
    assert 150 < found["range"].items <= 320  # the model was last read before the end
    assert found["range"].cpu_s is None
    assert found["decode"].items == 320  # its Python function is timed call by call
    assert found["decode"].busy_s > 320 * 0.002
    assert found["decode"].cpu_s < 0.5 * found["decode"].busy_s
    queue = report.profile.queues[0]
    assert (queue.name, queue.capacity, queue.to_sink, queue.samples > 0) == ("prefetch(2)", 2, True, True)
    assert "decode.num_parallel_calls=2, prefetch=2" in str(report)
    assert report.profile.settings["framework"] == "tf.data"


def test_a_slow_map(stored: StoredReports) -> None:
    report = stored(lambda: played(dataset_of(0.003), 0.001))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "too_few_workers")
    advice = report.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("decode.num_parallel_calls", 2)
    assert "set it in .map()" in advice.text
    assert report.what_if(**{"decode.num_parallel_calls": 8})["step_s"] < 0.5 * report.profile.sink.step_s


def test_python_functions_that_wait_for_the_interpreter_lock(stored: StoredReports) -> None:
    def rows() -> Iterator[int]:
        yield from range(400)

    def computes(item: Any) -> Any:
        until = time.thread_time() + 0.003
        while time.thread_time() < until:
            sum(range(50))
        return item

    def decode(item: Any) -> Any:
        return tf.numpy_function(computes, [item], tf.int64)

    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.int64))
    dataset = dataset.map(decode, num_parallel_calls=4).batch(8).prefetch(2)
    report = stored(lambda: played(dataset, 0.001))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "gil_contention")
    found = operators(report)
    assert (found["generator"].items, found["generator"].failures) == (401, 0)  # the last call ends it
    # Waiting for the lock is not the generator's time.
    assert found["generator"].busy_s < 0.1 * found["decode"].busy_s


def test_a_function_with_operations_of_tensorflow_has_tensorflows_figures() -> None:
    def mixed(item: Any) -> Any:
        return tf.numpy_function(lambda one: one, [tf.math.square(item)], tf.int64)

    loader = hr.wrap(tf.data.Dataset.range(320).map(mixed, num_parallel_calls=2).batch(8).prefetch(2))
    consume(loader, 0.001)
    assert operators(loader.report())["mixed"].cpu_s is None


def test_a_function_of_python_is_recorded_for_the_dataset_that_runs() -> None:
    first, second = dataset_of(0.001), dataset_of(0.001)
    recorded = hr.wrap(first)
    consume(recorded)
    consume(second)
    assert operators(recorded.report())["decode"].items < 400  # not those of the other one


def test_a_slow_source(stored: StoredReports) -> None:
    def rows() -> Iterator[int]:
        for number in range(200):
            time.sleep(0.003)
            yield number

    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.int64))
    report = stored(
        lambda: played(dataset.map(lambda item: item + 1, num_parallel_calls=2).batch(8).prefetch(2), 0.001)
    )
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.operator == "generator"


def test_a_slow_training_step(stored: StoredReports) -> None:
    report = stored(lambda: played(dataset_of(), 0.02))
    assert report.diagnosis.kind == "not_input_bound"
    assert report.diagnosis.advice == []


def test_everything_in_the_loop(stored: StoredReports) -> None:
    report = stored(lambda: played(dataset_of(0.002, calls=None, ahead=None), 0.005))
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.operator == "decode"


def test_tuned_values_are_todays() -> None:
    loader = hr.wrap(dataset_of(0.002, calls=tf.data.AUTOTUNE, ahead=tf.data.AUTOTUNE))
    for _ in range(2):
        consume(loader, limit=20)
    settings = loader.report().profile.settings
    assert int(settings["decode.num_parallel_calls"]) >= 1
    assert settings["prefetch"] == "AUTOTUNE"


def test_the_users_options_are_shown() -> None:
    options = tf.data.Options()
    options.autotune.cpu_budget = 3
    options.threading.private_threadpool_size = 4
    loader = hr.wrap(dataset_of(count=40).with_options(options))
    consume(loader)
    settings = loader.report().profile.settings
    assert settings["autotune.cpu_budget"] == "3"
    assert settings["threading.private_threadpool_size"] == "4"


def test_a_merged_node_is_found_along_the_chain() -> None:
    order = tfdata.graph.read_graph(
        tf.data.Dataset.range(9).shuffle(4).map(abs, 2).batch(3).prefetch(1), 2
    ).order
    found = tfdata.graph.match(["Root", "Prefetch", "MapAndBatch", "ShuffleV3", "Range"], order)
    names = [[node.name for node in nodes] for nodes in found]
    assert names == [[], ["prefetch(1)"], ["batch(3)", "abs"], ["shuffle(4)"], ["range"]]


# --- nothing changes ---


def fails(item: Any) -> Any:
    return tf.debugging.assert_less(item, tf.constant(77, tf.int64)) or item


CONFIGURATIONS: dict[str, Callable[[], Any]] = {
    "parallel": dataset_of,
    "in the loop": lambda: dataset_of(calls=None, ahead=None),
    "shuffled": lambda: tf.data.Dataset.range(90).shuffle(16, seed=4).batch(4).repeat(2),
    "interleaved": lambda: tf.data.Dataset.range(6).interleave(
        lambda item: tf.data.Dataset.range(item, item + 9), cycle_length=3, num_parallel_calls=2
    ),
    "filtered": lambda: tf.data.Dataset.range(90).filter(lambda item: item % 3 == 0).batch(5),
    "error in a map": lambda: tf.data.Dataset.range(90).map(
        lambda item: tf.debugging.check_numerics(1.0 / tf.cast(77 - item, tf.float32), "row 77")
    ),
    "zipped": lambda: tf.data.Dataset.zip((tf.data.Dataset.range(9), tf.data.Dataset.range(9, 18))),
    "not tuned": lambda: _untuned(dataset_of(count=80)),
}


def _untuned(dataset: Any) -> Any:
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_batches_and_errors_are_those_of_a_bare_dataset(name: str) -> None:
    def shown(found: tuple[list[Any], str]) -> tuple[str, str]:
        return repr(found[0]), found[1].partition(" [Op:")[0][:60]

    make = CONFIGURATIONS[name]
    bare, recorded = make(), hr.wrap(make())
    for _ in range(2):
        assert shown(outcome(lambda: iter(recorded))) == shown(outcome(lambda: iter(bare)))
    assert recorded.report().profile.sink.steps > 0


def test_a_checkpoint_of_the_iterator_goes_on(tmp_path: Path) -> None:
    def make() -> Any:
        return tf.data.Dataset.range(90).shuffle(16, seed=3).map(lambda item: item + 1, 2).batch(4)

    bare, items = iter(make()), iter(hr.wrap(make()))
    assert plain([next(items) for _ in range(7)]) == plain([next(bare) for _ in range(7)])
    path = tf.train.Checkpoint(iterator=items.__wrapped__).save(str(tmp_path / "state"))
    resumed = iter(hr.wrap(make()))
    tf.train.Checkpoint(iterator=resumed.__wrapped__).restore(path)
    rest = plain(list(bare))
    assert plain(list(items)) == rest
    assert plain(list(resumed)) == rest


def test_the_training_loop_leaves_early() -> None:
    loader = hr.wrap(dataset_of())
    assert len(consume(loader, limit=5)) == 5
    assert len(consume(loader)) == 40
    assert loader.report().profile.sink.steps == 45


def test_two_loaders_at_once() -> None:
    first, second = hr.wrap(dataset_of(0.001)), hr.wrap(dataset_of(0.001))
    assert all(bool(tf.reduce_all(one == two)) for one, two in zip(first, second, strict=True))
    for loader in (first, second):
        assert operators(loader.report())["decode"].items > 50


def test_another_version_is_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert tfdata.TfDataAdapter.libraries[0] == "tensorflow"
    assert_seen_from_outside(monkeypatch, caplog, tfdata, dataset_of)


SCRIPT = """
import time
import tensorflow as tf

def sleep(item):
    time.sleep(0.004)
    return item

def decode(item):
    return tf.numpy_function(sleep, [item], tf.int64)

dataset = tf.data.Dataset.range(80).map(decode, num_parallel_calls=1).prefetch(2)
print(sum(int(item) for item in dataset))
"""


def test_headrace_run_needs_no_change(tmp_path: Path) -> None:
    printed, report = run_script(tmp_path, SCRIPT)
    assert printed.startswith("3160\n")
    assert report.profile.loader == "PrefetchDataset at train.py:13"
    assert operators(report)["decode"].items > 60
