"""MindSpore's datasets, live: operators, queue levels and verdicts in MindSpore's own words."""

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from stored_reports import StoredReports

ds: Any = pytest.importorskip("mindspore.dataset", reason="mindspore is not installed: make mindspore")

pytestmark = pytest.mark.usefixtures("run")


class Numbers:
    """Random access: so many numbers, each of which takes a while."""

    def __init__(self, count: int, seconds: float = 0) -> None:
        self.count = count
        self.seconds = seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any]:
        if self.seconds:
            time.sleep(self.seconds)
        return (np.full((4,), index, np.float32),)


def numbers(count: int, seconds: float = 0) -> Callable[[], Iterator[tuple[Any]]]:
    def generate() -> Iterator[tuple[Any]]:
        for index in range(count):
            time.sleep(seconds)
            yield (np.full((4,), index, np.float32),)

    return generate


def decode(row: Any) -> Any:
    time.sleep(0.01)
    return row


def double(row: Any) -> Any:
    return 2 * row


def fails_at_seven(row: Any) -> Any:
    if row[0] == 7:
        raise ValueError("seven")
    return row


def gather(columns: list[Any], info: Any) -> tuple[list[Any]]:
    time.sleep(0.012)
    return (columns,)


def source(count: int = 80, seconds: float = 0, workers: int = 1) -> Any:
    return ds.GeneratorDataset(Numbers(count, seconds), ["x"], shuffle=False, num_parallel_workers=workers)


def mapped(function: Any = decode, count: int = 80, seconds: float = 0, **settings: Any) -> Any:
    settings = {"num_parallel_workers": 1} | settings
    return source(count, seconds).map(function, ["x"], **settings).batch(2, num_parallel_workers=1)


def consume(iterator: Any, seconds: float = 0) -> list[list[float]]:
    batches = []
    for batch in iterator:
        rows = batch["x"] if isinstance(batch, dict) else batch[0]
        batches.append([float(value) for value in rows[:, 0]])
        if seconds:
            time.sleep(seconds)
    return batches


def rows(dataset: Any, epochs: int = 1) -> list[list[float]]:
    return consume(dataset.create_dict_iterator(num_epochs=epochs, output_numpy=True))


def operators(report: Any) -> dict[str, Any]:
    return {op.name: op for op in report.profile.operators}


@pytest.mark.parametrize("processes", [False, True])
def test_results_and_order_are_unchanged(processes: bool) -> None:
    bare = mapped(double, python_multiprocessing=processes)
    loader = hr.wrap(mapped(double, python_multiprocessing=processes))
    assert rows(loader) == rows(bare)
    tuples = loader.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert consume(tuples) == rows(bare)
    assert loader.report().profile.epochs == 2


def test_a_wrapped_dataset_is_still_one() -> None:
    bare = mapped(double)
    loader = hr.wrap(bare)
    assert isinstance(loader, type(bare))
    assert type(loader).__name__ == "BatchDataset"
    assert loader.get_dataset_size() == bare.get_dataset_size() == 40
    assert loader.get_col_names() == ["x"]
    iterator = loader.create_dict_iterator(num_epochs=1)
    assert type(iterator).__name__ == "DictIterator"
    assert isinstance(iterator, ds.engine.iterators.DictIterator)


def looped(dataset: Any, seconds: float = 0) -> hr.Report:
    loader = hr.wrap(dataset)
    consume(loader.create_dict_iterator(num_epochs=1, output_numpy=True), seconds=seconds)
    return loader.report()


def test_a_slow_function_is_named_with_what_to_set(stored: StoredReports) -> None:
    report = stored(lambda: looped(mapped(decode, count=120), 0.004))
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.operator == "map(decode)"
    found = operators(report)
    assert list(found) == ["Numbers", "map(decode)", "batch"]
    assert found["map(decode)"].items == 120
    assert found["map(decode)"].service.mean_s == pytest.approx(0.01, rel=0.3)
    workers = {each.name: each for each in report.profile.model.parameters}[
        "map(decode).num_parallel_workers"
    ]
    assert workers.value == 1
    for advice in report.diagnosis.advice:
        assert advice.parameter in ("map(decode).num_parallel_workers", "")
        assert advice.to is None or advice.to <= workers.max


def test_batches_that_are_there_are_no_wait_for_input(stored: StoredReports) -> None:
    report = stored(lambda: looped(mapped(double, count=200), 0.006))
    assert report.profile.sink.ready_share > 0.25  # a loaded machine wakes the thread late
    assert report.diagnosis.kind == "not_input_bound"


def test_operators_of_mindspores_own_are_known_by_their_queues_alone() -> None:
    loader = hr.wrap(mapped(double, count=60))
    rows(loader)
    batch = operators(loader.report())["batch"]
    assert batch.items is None
    assert batch.busy_s is None
    assert batch.fidelity == "sampled"


def test_a_generator_function_has_no_workers(stored: StoredReports) -> None:
    def play() -> hr.Report:
        dataset = ds.GeneratorDataset(numbers(60, 0.012), ["x"], shuffle=False)
        dataset = dataset.map(double, ["x"], num_parallel_workers=2).batch(2, num_parallel_workers=1)
        return looped(dataset, 0.005)

    report = stored(play)
    assert report.diagnosis.operator == "generate"
    assert report.diagnosis.cause == "serial_operator"
    names = {each.name for each in report.profile.model.parameters}
    assert "generate.num_parallel_workers" not in names
    assert operators(report)["generate"].items == 60


def test_worker_processes_are_recorded() -> None:
    loader = hr.wrap(source(60, 0.008, workers=2).map(double, ["x"], num_parallel_workers=1).batch(2))
    rows(loader)
    found = operators(loader.report())["Numbers"]
    assert found.items == 60
    assert len({worker.pid for worker in found.per_worker}) == 2
    assert os.getpid() not in {worker.pid for worker in found.per_worker}


def test_a_function_of_batches_is_timed(stored: StoredReports) -> None:
    dataset = source(80).batch(
        4, num_parallel_workers=1, per_batch_map=gather, input_columns=["x"], output_columns=["x"]
    )
    report = stored(lambda: looped(dataset))
    assert operators(report)["batch(gather)"].items == 20
    assert report.diagnosis.operator == "batch(gather)"


def test_several_functions_of_one_map_share_its_workers() -> None:
    loader = hr.wrap(mapped([double, decode], count=60))
    rows(loader)
    found = operators(loader.report())
    assert found["decode"].segment == found["double"].segment >= 0
    assert found["decode"].items == found["double"].items == 60


def test_branches_are_kept_apart(stored: StoredReports) -> None:
    left = source(60, 0.01)
    right = ds.GeneratorDataset(Numbers(60), ["y"], shuffle=False).map(double, ["y"], num_parallel_workers=1)
    report = stored(lambda: looped(ds.zip((left, right)).batch(2, num_parallel_workers=1)))
    assert report.diagnosis.operator == "Numbers"
    assert set(operators(report)) == {"Numbers", "Numbers#2", "map(double)", "batch"}


def test_errors_of_the_user_pass_through() -> None:
    loader = hr.wrap(mapped(fails_at_seven, count=20))
    with pytest.raises(RuntimeError, match="seven"):
        rows(loader)
    assert operators(loader.report())["map(fails_at_seven)"].failures == 1


def test_epochs_of_one_iterator() -> None:
    loader = hr.wrap(mapped(double, count=40))
    iterator = loader.create_dict_iterator(num_epochs=3, output_numpy=True)
    epochs = [consume(iterator) for _ in range(3)]
    assert [len(epoch) for epoch in epochs] == [20, 20, 20]
    report = loader.report()
    assert report.profile.epochs == 3
    assert report.profile.sink.steps == 60
    assert loader.report(epoch=2).profile.sink.steps == 20


def test_a_loop_may_leave_early() -> None:
    loader = hr.wrap(mapped(double, count=400))
    for number, _ in enumerate(loader.create_dict_iterator(num_epochs=1)):
        if number == 5:
            break
    assert len(rows(loader)) == 200


def test_an_iterator_is_recorded_as_far_as_it_can_be() -> None:
    iterator = hr.wrap(mapped(decode, count=60).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert len(consume(iterator)) == 30
    report = iterator.report()
    assert operators(report)["map(decode)"].items == 60
    assert report.profile.sink.steps == 30


def test_queue_levels_come_from_mindspores_monitor(stored: StoredReports) -> None:
    # A sample a second, the last of which may find it empty.
    report = stored(lambda: looped(mapped(decode, count=1200)))
    queues = {queue.name: queue for queue in report.profile.queues}
    assert queues["Numbers ->"].capacity == 16
    assert queues["Numbers ->"].mean > 12
    assert queues["map(decode) ->"].mean < 4
    assert not list(Path(tempfile.gettempdir()).glob("headrace-minddata-*"))


def test_autotune_is_left_alone() -> None:
    ds.config.set_enable_autotune(True)
    try:
        loader = hr.wrap(mapped(double, count=40))
        assert len(rows(loader)) == 20
        assert loader.report().profile.queues == []
    finally:
        ds.config.set_enable_autotune(False)


def test_run_records_an_unchanged_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""\
        import time, numpy as np
        import mindspore.dataset as ds

        class Numbers:
            def __len__(self): return 120
            def __getitem__(self, index): return (np.full(1, index, np.float32),)

        def decode(row):
            time.sleep(0.01)
            return row

        dataset = ds.GeneratorDataset(Numbers(), ["x"], shuffle=False)
        dataset = dataset.map(decode, ["x"], num_parallel_workers=1).batch(2)
        for epoch in range(2):
            for batch in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
                pass
        """)
    )
    command = [sys.executable, "-m", "headrace", "run", "--out", str(tmp_path / "run"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    report = hr.Report.load(tmp_path / "run")
    assert report.loader == "BatchDataset at train.py:15"
    assert report.profile.epochs == 2
    assert operators(report)["map(decode)"].items == 240
