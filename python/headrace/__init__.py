"""Headrace: names the operator of an input pipeline that keeps an accelerator waiting, and what to change.

    import headrace as hr

    loader = hr.wrap(loader)          # a DataLoader, any iterable, or a function that makes a batch
    for batch in loader:
        train_step(batch)
    print(loader.report())

Times are seconds. Messages go through ``logging.getLogger("headrace")``.
"""

from __future__ import annotations

from headrace.common import command_path as _command_path  # noqa: F401  # isort: skip - before any other import
from typing import TYPE_CHECKING, Any

from headrace._core import DeviceArray, Queue, __version__
from headrace.errors import DeviceError, Error, FormatError, SegmentError, UsageError, WatchError
from headrace.loaders.wrap import wrap
from headrace.record.operator import operator
from headrace.record.session import Session, params, session
from headrace.record.to_device import to_device
from headrace.results.report import Report

if TYPE_CHECKING:
    from headrace import export, pipeline
    from headrace.cluster import Cluster
    from headrace.cluster.fleet import Fleet
    from headrace.pipeline import Pipeline, generator, native_body, source
    from headrace.predict.autopilot import autopilot
    from headrace.predict.comparison import Comparison, compare
    from headrace.predict.replay import ceiling
    from headrace.predict.tuning import Tuned, tune
    from headrace.record.get_next import get_next
    from headrace.record.operator import annotate
    from headrace.record.steps import step, trace_steps
    from headrace.results import timeline
    from headrace.results.runs_table import runs
    from headrace.results.timeline import trace_handler
    from headrace.show.loading import load
    from headrace.traces.dumps import check_dump
    from headrace.traces.memory import MemorySnapshot
    from headrace.traces.table import Table
    from headrace.traces.trace import Trace
    from headrace.transport import HostDevice, open_device
    from headrace.watch.tensors.watching import Watch, watch

#: Names that the documentation teaches.
__all__ = [
    "Cluster",
    "Error",
    "MemorySnapshot",
    "Queue",
    "Report",
    "Table",
    "Trace",
    "UsageError",
    "__version__",
    "autopilot",
    "compare",
    "export",
    "get_next",
    "load",
    "operator",
    "pipeline",
    "runs",
    "session",
    "step",
    "timeline",
    "to_device",
    "trace_handler",
    "trace_steps",
    "tune",
    "watch",
    "wrap",
]
#: Names of answers and errors, and of what older programs call; the documentation has others for the latter.
__all__ += [
    "Comparison",
    "DeviceArray",
    "DeviceError",
    "Fleet",
    "FormatError",
    "HostDevice",
    "Pipeline",
    "SegmentError",
    "Session",
    "Tuned",
    "Watch",
    "WatchError",
    "annotate",
    "ceiling",
    "check_dump",
    "generator",
    "native_body",
    "open_device",
    "params",
    "source",
]

#: Names that most programs do not use are imported at their first use: half the time of `import headrace`.
_LATER = {
    "Cluster": "headrace.cluster",
    "Comparison": "headrace.predict.comparison",
    "Fleet": "headrace.cluster.fleet",
    "HostDevice": "headrace.transport",
    "MemorySnapshot": "headrace.traces.memory",
    "Pipeline": "headrace.pipeline",
    "Table": "headrace.traces.table",
    "Trace": "headrace.traces.trace",
    "Tuned": "headrace.predict.tuning",
    "Watch": "headrace.watch.tensors.watching",
    "annotate": "headrace.record.operator",
    "autopilot": "headrace.predict.autopilot",
    "ceiling": "headrace.predict.replay",
    "check_dump": "headrace.traces.dumps",
    "compare": "headrace.predict.comparison",
    "generator": "headrace.pipeline",
    "get_next": "headrace.record.get_next",
    "load": "headrace.show.loading",
    "native_body": "headrace.pipeline",
    "open_device": "headrace.transport",
    "runs": "headrace.results.runs_table",
    "source": "headrace.pipeline",
    "step": "headrace.record.steps",
    "trace_handler": "headrace.results.timeline",
    "trace_steps": "headrace.record.steps",
    "tune": "headrace.predict.tuning",
}
_MODULES_LATER = {
    "export": "headrace.export",
    "job": "headrace.job",
    "pipeline": "headrace.pipeline",
    "report": "headrace.report",
    "timeline": "headrace.results.timeline",
    "watch": "headrace.watch",  # it can be called
}


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext headrace``: the cell magic ``%%headrace`` (docs/integrations.md)."""
    from headrace.show.notebook import load_ipython_extension as load

    load(shell)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES_LATER:
        return import_module(_MODULES_LATER[name])
    if name not in _LATER:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES_LATER})
