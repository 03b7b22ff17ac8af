"""Holistic Trace Analysis (0.6.1) answered by Headrace: change one import and keep the program.

    from headrace.compat.hta import TraceAnalysis       # was: from hta.trace_analysis import TraceAnalysis
    analyzer = TraceAnalysis(trace_dir="traces/")
    analyzer.get_temporal_breakdown(visualize=False)

Method names, arguments, data frames and figures are those of that version, its quirks included: they are
listed in docs/device_traces.md; `headrace.Trace` has the corrected definitions. Needs pandas. No
pictures are drawn: the frames have pandas' own.
"""

from __future__ import annotations

from headrace.errors import UsageError

try:
    import pandas as _pandas  # noqa: F401
except ImportError:
    raise UsageError("headrace.compat.hta gives pandas data frames: pip install pandas") from None

from headrace.compat.hta._analysis import TimeSeriesTypes, TraceAnalysis
from headrace.compat.hta._critical_path import CPGraph
from headrace.compat.hta._diff import DeviceType, LabeledTrace, TraceDiff
from headrace.compat.hta._symbols import TraceSymbolTable
from headrace.compat.hta._trace import Trace

__all__ = [
    "CPGraph",
    "DeviceType",
    "LabeledTrace",
    "TimeSeriesTypes",
    "Trace",
    "TraceAnalysis",
    "TraceDiff",
    "TraceSymbolTable",
]
