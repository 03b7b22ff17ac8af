"""The exceptions of Headrace. Recording raises nothing into a training loop."""

from __future__ import annotations

import queue
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.results.figures import Finding


class Error(Exception):
    """Root of the tree: whatever Headrace itself reports."""


class FormatError(Error):
    """A file or text that is not what it should be: which, where, and what was expected there.

    offset: None for a file of which nothing could be read; ``expected`` is the reason then.
    """

    def __init__(self, path: str, offset: int | None, expected: str) -> None:
        super().__init__(path, offset, expected)
        self.path = path
        self.offset = offset
        self.expected = expected

    def __str__(self) -> str:
        if self.offset is None:
            return f"{self.path}: {self.expected}"
        return f"{self.path}: byte {self.offset}: expected {self.expected}"


class SegmentError(Error):
    """A segment that is missing, cut short, of another version, or not ours."""


class UsageError(Error):
    """A call that cannot mean anything."""


class WatchError(Error):
    """`hr.watch(..., on_hit="raise")` found a fault. finding: what is wrong, and where."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.says}. {finding.cure}")
        self.finding = finding


class OperatorError(Error):
    """A body threw. ``except`` clauses for the body's own exception type catch it as well.

    operator: the operator's name. item: the item's number at that operator, from 0. ``__cause__``: the body's
    own exception, with its traceback.
    """

    operator: str
    item: int


class WorkerDiedError(Error):
    """A worker process ended in the middle of an item: killed, out of memory, or it called exit."""


class DeviceError(Error):
    """An accelerator or its runtime failed."""


class TransferCancelled(DeviceError):  # noqa: N818 - no error of the device: somebody called `cancel`
    """A copy that waited for a buffer when `Device.cancel` was called, or later."""


if sys.version_info >= (3, 13):
    ShutDown = queue.ShutDown
else:

    class ShutDown(Exception):  # noqa: N818 - queue.ShutDown, as Python 3.13 has it
        """`Queue.shutdown` was called."""
