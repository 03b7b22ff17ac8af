"""TensorBoard: scalars while the loop runs, the verdict as text at the end."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.export._publisher import Publisher
from headrace.results.report import Report


def tensorboard(logdir: str | os.PathLike[str], *, every_s: float = 30.0) -> Publisher:
    """Write the figures of this process's loops to an event file in ``logdir``, until the process ends.

        hr.export.tensorboard("runs/a")    # then: tensorboard --logdir runs

    The x axis is the loop's step. At the end the report is added as text, and its page and timeline are
    written beside the event file. Returns what ends it earlier: ``close()``, or a ``with`` block.
    Raises UsageError without ``tensorboard`` (``pip install 'headrace[tensorboard]'``).
    """
    try:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        raise UsageError(
            "hr.export.tensorboard needs tensorboard: pip install 'headrace[tensorboard]'"
        ) from None
    return Publisher(_Target(Path(logdir), EventFileWriter(os.fspath(logdir))), every_s)


class _Target:
    def __init__(self, folder: Path, writer: Any) -> None:
        self._folder = folder
        self._writer = writer

    def figures(self, report: Report, figures: dict[str, float]) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=f"headrace/{name}", simple_value=value) for name, value in figures.items()
        ]
        self._write(Summary(value=values), report)

    def verdict(self, report: Report, sentence: str) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.types_pb2 import DT_STRING

        whole = "\n".join(f"    {line}" for line in report.to_text().splitlines())
        text = TensorProto(dtype=DT_STRING, string_val=[f"{sentence}\n\n{whole}".encode()])
        kind = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        tag = f"headrace/{report.loader}/report"
        self._write(Summary(value=[Summary.Value(tag=tag, metadata=kind, tensor=text)]), report)

    def files(self, paths: Sequence[Path]) -> None:
        for path in paths:
            shutil.copy(path, self._folder)
        self._writer.close()

    def _write(self, summary: Any, report: Report) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.add_event(Event(wall_time=time.time(), step=report.profile.sink.steps, summary=summary))
        self._writer.flush()
