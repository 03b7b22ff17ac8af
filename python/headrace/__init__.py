"""Headrace: names the operator of an input pipeline that keeps an accelerator waiting, and what to change.

    import headrace as hr

    loader = hr.wrap(loader)          # a DataLoader, any iterable, or a function that makes a batch
    for batch in loader:
        train_step(batch)
    print(loader.report())

Times are seconds. Messages go through ``logging.getLogger("headrace")``.
"""

from __future__ import annotations

from headrace import _command_path as _command_path  # isort: skip - before any other import
import sys as _sys
from typing import TYPE_CHECKING, Any

if not _sys.platform.startswith("linux"):
    raise ImportError("headrace runs on Linux only: it needs /proc, /dev/shm and futexes")

from headrace._core import DeviceArray, Queue, __version__
from headrace._operator import operator
from headrace._session import Session, session
from headrace._to_device import to_device
from headrace.errors import DeviceError, Error, FormatError, SegmentError, UsageError
from headrace.report import Report
from headrace.wrap import wrap

if TYPE_CHECKING:
    from headrace import export, timeline
    from headrace._get_next import get_next
    from headrace.annotation import annotate
    from headrace.cluster import Cluster
    from headrace.comparison import Comparison, compare
    from headrace.pipeline import Pipeline, generator, native_body, source
    from headrace.replay import ceiling
    from headrace.steps import step, trace_steps
    from headrace.table import Table
    from headrace.timeline import trace_handler
    from headrace.trace import Trace
    from headrace.transport import HostDevice, open_device
    from headrace.tuning import Tuned, tune

__all__ = [
    "Cluster",
    "Comparison",
    "DeviceArray",
    "DeviceError",
    "Error",
    "FormatError",
    "HostDevice",
    "Pipeline",
    "Queue",
    "Report",
    "SegmentError",
    "Session",
    "Table",
    "Trace",
    "Tuned",
    "UsageError",
    "__version__",
    "annotate",
    "ceiling",
    "compare",
    "export",
    "generator",
    "get_next",
    "native_body",
    "open_device",
    "operator",
    "session",
    "source",
    "step",
    "timeline",
    "to_device",
    "trace_handler",
    "trace_steps",
    "tune",
    "wrap",
]

#: What most programs do not use is imported at its first use: it would double the time of `import headrace`.
_LATER = {
    "Cluster": "headrace.cluster",
    "Comparison": "headrace.comparison",
    "HostDevice": "headrace.transport",
    "Pipeline": "headrace.pipeline",
    "Table": "headrace.table",
    "Trace": "headrace.trace",
    "Tuned": "headrace.tuning",
    "annotate": "headrace.annotation",
    "ceiling": "headrace.replay",
    "compare": "headrace.comparison",
    "generator": "headrace.pipeline",
    "get_next": "headrace._get_next",
    "native_body": "headrace.pipeline",
    "open_device": "headrace.transport",
    "source": "headrace.pipeline",
    "step": "headrace.steps",
    "trace_handler": "headrace.timeline",
    "trace_steps": "headrace.steps",
    "tune": "headrace.tuning",
}
_MODULES_LATER = ("export", "timeline")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext headrace``: the cell magic ``%%headrace`` (docs/integrations.md)."""
    from headrace.notebook import load_ipython_extension as load

    load(shell)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES_LATER:
        return import_module(f"headrace.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES_LATER})
