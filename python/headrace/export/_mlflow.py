"""MLflow: metrics of its active run, the verdict as tags, page and timeline as artefacts."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.export._publisher import Publisher
from headrace.results.report import Report

#: Characters that a metric's name may have.
_NOT_ALLOWED = re.compile(r"[^\w\-. :/]", re.ASCII)
#: Characters of a tag's value, and metrics of one call.
_MAX_OF_TAG, _MAX_AT_ONCE = 5000, 1000


def mlflow(*, run_id: str | None = None, every_s: float = 30.0) -> Publisher:
    """Log the figures of this process's loops to an MLflow run, until the process ends.

        with mlflow.start_run():
            with hr.export.mlflow():
                train()

    run_id: default the active run. The step is the loop's. At the end, ``headrace.verdict`` is a tag of the
    run, and the report's page and timeline are in its artefacts under ``headrace``. Returns what ends it:
    ``close()``, or a ``with`` block. Raises UsageError without ``mlflow`` (``pip install
    'headrace[mlflow]'``), and without an active run.
    """
    try:
        import mlflow as library
    except ImportError:
        raise UsageError("hr.export.mlflow needs mlflow: pip install 'headrace[mlflow]'") from None
    if run_id is None:
        active = library.active_run()
        if active is None:
            raise UsageError("hr.export.mlflow needs an active run: call it inside mlflow.start_run()")
        run_id = active.info.run_id
    return Publisher(_Target(library.MlflowClient(), str(run_id)), every_s)


class _Target:
    def __init__(self, client: Any, run_id: str) -> None:
        self._client = client
        self._run_id = run_id

    def figures(self, report: Report, figures: dict[str, float]) -> None:
        from mlflow.entities import Metric

        now_ms, step = int(time.time() * 1000), report.profile.sink.steps
        metrics = [
            Metric(f"headrace/{_NOT_ALLOWED.sub('_', name)}"[:250], value, now_ms, step)
            for name, value in figures.items()
        ]
        for first in range(0, len(metrics), _MAX_AT_ONCE):
            self._client.log_batch(self._run_id, metrics=metrics[first : first + _MAX_AT_ONCE])

    def verdict(self, report: Report, sentence: str) -> None:
        name = _NOT_ALLOWED.sub("_", report.loader)[:200]
        self._client.set_tag(self._run_id, f"headrace.verdict.{name}", sentence[:_MAX_OF_TAG])

    def files(self, paths: Sequence[Path]) -> None:
        for path in paths:
            self._client.log_artifact(self._run_id, str(path), "headrace")
