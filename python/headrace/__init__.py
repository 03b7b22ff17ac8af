"""Headrace: names the operator of an input pipeline that keeps an accelerator waiting, and what to change.

    import headrace as hr

    loader = hr.wrap(loader)          # any iterable, iterator or DataLoader
    for batch in loader:
        train_step(batch)
    print(loader.report())

Times are seconds. Messages go through ``logging.getLogger("headrace")``.
"""

from __future__ import annotations

import sys as _sys

if not _sys.platform.startswith("linux"):
    raise ImportError("headrace runs on Linux only: it needs /proc, /dev/shm and futexes")

from headrace._core import DeviceArray, Queue, __version__
from headrace._operator import operator
from headrace._session import Session, session
from headrace._to_device import to_device
from headrace.errors import DeviceError, Error, FormatError, SegmentError, UsageError
from headrace.pipeline import Pipeline, generator, native_body, source
from headrace.report import Report
from headrace.transport import HostDevice, open_device
from headrace.wrap import wrap

__all__ = [
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
    "UsageError",
    "__version__",
    "generator",
    "native_body",
    "open_device",
    "operator",
    "session",
    "source",
    "to_device",
    "wrap",
]
