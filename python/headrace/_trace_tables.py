"""The tables that a `Trace` answers with: one method per analysis."""

from __future__ import annotations

from headrace import _core


class TraceTables:
    """What can be asked of device traces. The native core computes; this names and documents it."""

    _traces: _core.TraceSet
