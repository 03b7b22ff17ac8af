"""DALI's CPU operators: the wait for them, and callbacks of `external_source`."""

import time
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import played
from stored_reports import StoredReports

dali = pytest.importorskip("nvidia.dali", reason="NVIDIA DALI is not installed")
np = pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("run")


class Rows:
    """Samples of an external source."""

    def __init__(self, seconds: float, fails_at: int = -1) -> None:
        self.seconds = seconds
        self.fails_at = fails_at

    def __call__(self, sample: Any) -> Any:
        if sample.idx_in_epoch >= 200:
            raise StopIteration
        if sample.idx_in_epoch == self.fails_at:
            raise ValueError("no such row")
        time.sleep(self.seconds)
        return np.full((4,), sample.idx_in_epoch, np.float32)


def pipeline(source: Any) -> Any:
    @dali.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def rows() -> Any:
        return dali.fn.external_source(source, batch=False) * 2.0

    made = rows()
    made.build()
    return made


def iterator(source: Any) -> Any:
    from nvidia.dali.plugin.base_iterator import _DaliBaseIterator

    class Batches(_DaliBaseIterator):  # as the plugins do, without their frameworks
        def __init__(self) -> None:
            super().__init__([pipeline(source)], size=-1, auto_reset=False)
            if self._prepare_first_batch:
                self._first_batch = self._batch()

        def _batch(self) -> Any:
            [[out]] = self._get_outputs()
            self._schedule_runs()
            return np.asarray(out)[:, 0].copy()

        def __next__(self) -> Any:
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch
            return self._batch()

    return Batches()


def test_a_slow_callback_is_the_operator() -> None:
    loader = hr.wrap(iterator(Rows(0.002)))
    values = []
    for batch in loader:
        values += batch.tolist()
        time.sleep(0.001)
    assert values == [2.0 * number for number in range(200)]
    report = loader.report()
    assert report.loader == "DALI"
    rows = next(op for op in report.profile.operators if op.name == "Rows")
    assert rows.in_sink
    assert rows.service.p50_s > 0.0018


@pytest.mark.parametrize(
    ("row_s", "step_s", "expected"),
    [(0.002, 0.001, ("input_bound", "Rows")), (0, 0.04, ("not_input_bound", None))],
)
def test_verdict(
    row_s: float, step_s: float, expected: tuple[str, str | None], stored: StoredReports
) -> None:
    said = stored(lambda: played(iterator(Rows(row_s)), step_s)).diagnosis
    assert (said.kind, said.operator) == expected


def test_run_of_a_pipeline_is_a_loops_wait() -> None:
    made = pipeline(Rows(0.001))
    run = hr.wrap(made.run)
    values = [float(np.asarray(run()[0])[0, 0]) for _ in range(30)]
    assert values == [8.0 * number for number in range(30)]
    report: Any = run.report()
    assert report.profile.sink.steps == 30
    assert {op.name for op in report.profile.operators} >= {"Rows"}


def test_an_error_is_the_callbacks_own() -> None:
    loader = hr.wrap(iterator(Rows(0, fails_at=50)))
    with pytest.raises(ValueError, match="no such row"):
        list(loader)


def test_a_changed_name_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    loader = iterator(Rows(0))
    for made in loader._pipes:
        del made._seq_input_callbacks
        type(made)._seq_input_callbacks = property(lambda _: 1 / 0 if False else _missing())
    try:
        wrapped = hr.wrap(loader)
        iter(wrapped)
        assert "operator detail unavailable: dali" in caplog.text
    finally:
        del type(loader._pipes[0])._seq_input_callbacks


def _missing() -> None:
    raise AttributeError("_seq_input_callbacks")


def test_under_headrace_run(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    source = Path(__file__).read_text(encoding="utf-8").partition("def test_a_slow_callback")[0]
    script = tmp_path / "script.py"
    loop = "\nfor batch in iterator(Rows(0.001)):\n    time.sleep(0.001)\n"
    script.write_text(
        source.replace(
            "dali = pytest.importorskip",
            "import nvidia.dali.plugin.base_iterator\ndali = pytest.importorskip",
        )
        + loop
    )
    command = [sys.executable, "-m", "headrace", "run", "--out", "seen", str(script)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120, env=environment
    )
    assert result.returncode == 0, result.stderr
    report = hr.Report.load(tmp_path / "seen")
    assert report.loader.startswith("DALI at script.py:")
    assert any(op.name == "Rows" for op in report.profile.operators)
