"""`MemorySnapshot`: what a device's memory held, from a snapshot of PyTorch's allocator.

    torch.cuda.memory._record_memory_history()
    ...                                                # train
    torch.cuda.memory._dump_snapshot("snapshot.pickle")

    snapshot = hr.MemorySnapshot.load("snapshot.pickle")
    print(snapshot.holders())

Columns and how to read them: docs/memory.md.
"""

from __future__ import annotations

import os
from typing import Any

from headrace import _core
from headrace.common.page import HasPage
from headrace.errors import UsageError
from headrace.traces.declared import MemoryAnalyses
from headrace.traces.table_text import counted


class MemorySnapshot(MemoryAnalyses, HasPage):
    """A memory snapshot, read into columns. Immutable; any thread may use it.

    Sizes are bytes, times Unix nanoseconds. Tables have a row per device, or several.
    """

    _of_memory = True

    def __init__(self, snapshot: _core.MemorySnapshot) -> None:
        if not isinstance(snapshot, _core.MemorySnapshot):
            raise UsageError(
                f"hr.MemorySnapshot.load({snapshot!r}) reads a snapshot; the class itself takes no path"
            )
        self._snapshot = snapshot

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MemorySnapshot:
        """Read what ``torch.cuda.memory._dump_snapshot`` wrote, plain or compressed with gzip.

        XPUs, NPUs and MLUs write the same structure. Nothing in the file is run: a pickle that asks for more
        than plain values is refused. Raises FormatError for a file that is not a whole snapshot.
        """
        return cls(_core.MemorySnapshot(os.fspath(path)))

    @property
    def path(self) -> str:
        """The file."""
        return self._snapshot.path

    def _columns(self, name: str, options: dict[str, Any]) -> tuple[_core.Columns, ...]:
        return _core.make_memory_tables(self._snapshot, name, options)

    def _page(self) -> str:
        """The finding, memory over the events by who holds it, the tables."""
        from headrace.traces.memory_page import memory_page

        return memory_page(self)

    def __repr__(self) -> str:
        events = counted(self._snapshot.events, "event")
        return f"<headrace.MemorySnapshot: {counted(self._snapshot.segments, 'segment')}, {events}>"
