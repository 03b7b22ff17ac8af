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

from headrace import _core
from headrace.common.page import HasPage
from headrace.errors import UsageError
from headrace.traces.table import Table
from headrace.traces.table_text import counted


class MemorySnapshot(HasPage):
    """A memory snapshot, read into columns. Immutable; any thread may use it.

    Sizes are bytes, times Unix nanoseconds. Tables have a row per device, or several.
    """

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

    def peak(self) -> Table:
        """The most memory at once: how much, when, in which step, and what was there before the recording."""
        return Table(self._snapshot.peak())

    def holders(self) -> Table:
        """Who holds the memory of the peak: the innermost function outside of PyTorch, or ``backward``."""
        return Table(self._snapshot.holders())

    def fragmentation(self) -> Table:
        """What the reserved memory is made of: in use, rounded up, free between blocks, free as a whole."""
        return Table(self._snapshot.fragmentation())

    def oom(self, *, device_bytes: int = 0) -> Table:
        """Requests that failed: ``verdict`` says why, ``cure`` what to do.

        ``device_bytes``: the size of the device's memory, which a snapshot lacks. With it, memory of other
        processes is seen.
        """
        if device_bytes < 0:
            raise UsageError(f"device_bytes is the size of the device's memory, not {device_bytes}")
        return Table(self._snapshot.oom(device_bytes))

    def growth(self) -> Table:
        """What holds more memory from step to step: a leak, if it grew in every step."""
        return Table(self._snapshot.growth())

    def actions(self) -> Table:
        """The recorded events by kind: how many, and their bytes."""
        return Table(self._snapshot.actions())

    def over_time(self, *, moments: int = 240, places: int = 7) -> Table:
        """Who holds how much while the events go by: the highest level of each of ``moments`` parts of them.

        ``places``: those that hold most at the peak have rows of their own, all else is "others".
        """
        if moments < 1 or places < 0:
            raise UsageError(f"over_time needs a moment at least, not {moments}, and {places} places")
        return Table(self._snapshot.over_time(moments, places))

    def _page(self) -> str:
        """The finding, memory over the events by who holds it, the tables."""
        from headrace.traces.memory_page import memory_page

        return memory_page(self)

    def __repr__(self) -> str:
        events = counted(self._snapshot.events, "event")
        return f"<headrace.MemorySnapshot: {counted(self._snapshot.segments, 'segment')}, {events}>"
