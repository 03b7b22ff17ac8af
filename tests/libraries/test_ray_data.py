"""Ray Data: an execution's operators, from Ray's counters."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from stored_reports import StoredReports

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("ray.data", reason="Ray Data is not installed")

pytestmark = [pytest.mark.usefixtures("run"), pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Ray's workers cannot import it
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100 * 1024 * 1024,
    )
    yield
    ray.shutdown()


def slow(batch: Any) -> Any:
    time.sleep(0.05)
    return batch


def cheap(batch: Any) -> Any:
    return batch


def fails(batch: Any) -> Any:
    if 200 in batch["id"]:
        raise ValueError("no such row")
    return batch


def rows(*functions: Any, blocks: int = 60, **options: Any) -> Any:
    dataset = ray.data.range(blocks * 8, override_num_blocks=blocks)
    for function in functions:
        dataset = dataset.map_batches(function, batch_size=8, **options)
    return dataset


def numbers(batches: Any, step_s: float = 0.0) -> list[int]:
    found = []
    for batch in batches:
        found += [int(number) for number in batch["id"]]
        time.sleep(step_s)
    return found


@pytest.mark.usefixtures("cluster")
def test_the_operators_of_an_execution(stored: StoredReports) -> None:
    def play() -> hr.Report:
        pool = ray.data.TaskPoolStrategy(size=1)
        made = rows(slow, compute=pool).map_batches(cheap, num_cpus=0.5).iter_batches(batch_size=8)
        loader: Any = hr.wrap(made)
        assert sorted(numbers(loader, 0.002)) == list(range(480))
        return loader.report()

    report = stored(play)
    names = [op.name for op in report.profile.operators]
    slowest = max(report.profile.operators, key=lambda op: op.busy_s or 0)
    assert "slow" in slowest.name, names
    assert slowest.executor == "process"
    # The function's own time, without what Ray takes to start its tasks.
    assert slowest.items >= 30
    assert 0.045 < slowest.busy_s / slowest.items < 0.09
    assert report.profile.queues[-1].to_sink
    assert {queue.fidelity for queue in report.profile.queues} == {"sampled"}
    assert report.diagnosis.kind == "input_bound"
    assert "slow" in report.diagnosis.operator
    assert report.profile.settings["batch_size"] == "8"


@pytest.mark.usefixtures("cluster")
def test_a_slow_step_gets_no_alarm(stored: StoredReports) -> None:
    def play() -> hr.Report:
        loader: Any = hr.wrap(rows(cheap).iter_batches(batch_size=8, prefetch_batches=2))
        assert sorted(numbers(loader, 0.05)) == list(range(480))
        return loader.report()

    assert stored(play).diagnosis.kind == "not_input_bound"


@pytest.mark.usefixtures("cluster")
def test_errors_and_early_ends_are_the_bare_ones() -> None:
    dataset = rows(fails)
    loader: Any = hr.wrap(dataset.iter_batches(batch_size=8))
    with pytest.raises(Exception, match="no such row") as recorded:
        numbers(loader)
    with pytest.raises(Exception, match="no such row") as bare:
        numbers(dataset.iter_batches(batch_size=8))
    assert type(recorded.value).__name__ == type(bare.value).__name__  # Ray makes a class for each
    for batch in hr.wrap(rows(cheap).iter_batches(batch_size=8)):
        assert len(batch["id"]) == 8
        break


@pytest.mark.usefixtures("cluster")
def test_another_version_shows_the_wait_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from headrace.loaders.ray_data import Progress

    def changed(self: Progress) -> None:
        raise AttributeError("num_tasks_running")

    monkeypatch.setattr(Progress, "count_tasks", changed)
    loader: Any = hr.wrap(rows(cheap, blocks=12).iter_batches(batch_size=8))
    assert len(numbers(loader)) == 96
    assert "operator detail unavailable: ray" in caplog.text
    assert loader.report().profile.sink.steps == 12


def test_counters_without_the_functions_time_are_not_used() -> None:
    from headrace.loaders.ray_data import require_function_time

    require_function_time(types.SimpleNamespace(function_body_time_s=None, block_generation_time=0.1))
    with pytest.raises(AttributeError, match="function_body_time_s"):  # as in Ray 2.55
        require_function_time(types.SimpleNamespace(block_generation_time=0.1))


def test_workers_do_not_get_the_callback() -> None:
    from headrace.loaders.ray_data import CallbackClasses, RecordingCallback

    classes = CallbackClasses([int, RecordingCallback])
    assert pickle.loads(pickle.dumps(classes)) == [int]
    assert copy.deepcopy(classes) == copy.copy(classes) == [int, RecordingCallback]


SCRIPT = """
    import time, ray, ray.data
    def slow(batch):
        time.sleep(0.03)
        return batch
    if __name__ == "__main__":
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 object_store_memory=100 * 1024 * 1024)
        dataset = ray.data.range(320, override_num_blocks=40).map_batches(
            slow, batch_size=8, compute=ray.data.TaskPoolStrategy(size=1))
        print(sum(len(batch["id"]) for batch in dataset.iter_batches(batch_size=8)))
"""


def test_under_headrace_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-m", "headrace", "run", "--out", "seen", "script.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=150)
    assert (result.returncode, result.stdout.split()[-1]) == (0, "320"), result.stderr
    report = hr.Report.load(tmp_path / "seen")
    assert report.loader.startswith("Ray Data at script.py:")
    assert [op.name for op in report.profile.operators] == ["ReadRange", "MapBatches(slow)"]
    assert report.profile.settings["MapBatches(slow).compute"] == "1"


INSIDE = """
    import sys, time, ray, ray.data, torch
    def slow(batch):
        time.sleep(0.03)
        return batch
    class Rows(torch.utils.data.IterableDataset):
        def __iter__(self):
            for batch in dataset.iter_batches(batch_size=8):
                yield len(batch["id"])
    class Batches(torch.utils.data.IterableDataset):
        def __iter__(self):
            return (len(batch["id"]) for batch in dataset.iter_batches(batch_size=8))
    if __name__ == "__main__":
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 object_store_memory=100 * 1024 * 1024)
        dataset = ray.data.range(320, override_num_blocks=40).map_batches(
            slow, batch_size=8, compute=ray.data.TaskPoolStrategy(size=1))
        loader = torch.utils.data.DataLoader(Rows() if "--rows" in sys.argv else Batches(), batch_size=None)
        if "--wrap" in sys.argv:
            import headrace as hr
            loader = hr.wrap(loader, run="seen")
        print(sum(int(count) for epoch in range(2) for count in loader))
"""
OUTSIDE = ["-m", "headrace", "run", "--out", "seen"]


@pytest.mark.parametrize("arguments", [(OUTSIDE, ["--rows"]), (OUTSIDE, []), ([], ["--rows", "--wrap"])])
def test_inside_a_dataset_of_torch(
    arguments: tuple[list[str], list[str]], tmp_path: Path, stored: StoredReports
) -> None:
    """Ray's operators and the DataLoader's are one graph."""
    pytest.importorskip("torch", reason="PyTorch is not installed")

    def play() -> hr.Report:
        (tmp_path / "script.py").write_text(textwrap.dedent(INSIDE))
        command = [sys.executable, *arguments[0], "script.py", *arguments[1]]
        result = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=150
        )
        assert (result.returncode, result.stdout.split()[-1]) == (0, "640"), result.stderr
        found = hr.Report.load(tmp_path / "seen")
        assert len(found.loaders) == 1
        return found

    report = stored(play)
    dataset = "Rows" if "--rows" in arguments[1] else "Batches"
    names = [op.name for op in report.profile.operators]
    assert names == ["ReadRange", "MapBatches(slow)", dataset, "default_convert"]
    assert [op.in_sink for op in report.profile.operators] == [False, False, True, True]
    queues = [(queue.name, queue.to, queue.to_sink) for queue in report.profile.queues]
    assert queues == [
        ("ReadRange blocks", "MapBatches(slow)", False),
        ("MapBatches(slow) blocks", dataset, False),
    ]
    # Waiting for Ray is not the dataset's time.
    sink = report.profile.sink
    assert report.profile.operators[2].busy_s < 0.2 * sink.steps * sink.step_s
    assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "MapBatches(slow)")
    assert report.diagnosis.advice[0].parameter == "MapBatches(slow).compute"
    assert "num_workers" not in " ".join(each.text for each in report.diagnosis.advice)
