"""`fsspec` runs requests in the event loop of a thread of its own: they are the waiting thread's."""

from __future__ import annotations

import functools
import sys
import threading
from types import ModuleType
from typing import Any

from headrace import _core
from headrace.record.remote import calls

#: Libraries whose modules took the function by name.
_USERS = ("fsspec.", "s3fs", "gcsfs", "adlfs", "huggingface_hub.")

#: When a thread's last wait ended.
_thread = threading.local()


def hook(library: ModuleType) -> None:
    """A task inherits the context of the thread that hands it to the loop."""
    wait_for = library.sync

    @functools.wraps(wait_for)
    def sync(*args: Any, **kwargs: Any) -> Any:
        ended = getattr(_thread, "ended_ns", None)
        pauses = [] if ended is None else [_core.now_ns() - ended]
        token = calls.waiting.set((_core.remote_owner(), pauses))
        try:
            return wait_for(*args, **kwargs)
        finally:
            calls.waiting.reset(token)
            _thread.ended_ns = _core.now_ns()

    for name, module in list(sys.modules.items()):
        if name.startswith(_USERS) and vars(module).get("sync") is wait_for:
            module.sync = sync  # type: ignore[attr-defined]
    library.sync = sync  # type: ignore[attr-defined]
