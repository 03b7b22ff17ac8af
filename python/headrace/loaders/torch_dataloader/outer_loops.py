"""Loops over iterators that make each batch of several of a DataLoader inside: accelerate's dispatcher.

Rank 0 takes a batch for each rank, joins them and broadcasts the result; all ranks wait for that in next().
So GetNext is the outer iterator's, and what the inner batches were doing meanwhile is what it waited for.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

from headrace import _core
from headrace.loaders.torch_dataloader import loaders
from headrace.record.session import in_its_phase

#: By module: the class, and its attribute that holds the loader inside.
_CLASSES = {"accelerate.data_loader": ("DataLoaderDispatcher", "base_dataloader")}


class OuterLoop(Iterator[Any]):
    """One loop: stands in front of the generator that the class made."""

    def __init__(self, made: Any, inner: Any, handle: _core.LoaderHandle) -> None:
        self.inner = inner
        self.made = made
        self._recorder = _core.LoopRecorder(handle)
        self._watch: _core.IteratorWatch | None = None

    def adopt(self, watch: _core.IteratorWatch) -> None:
        """The inner loader's iterator is made."""
        watch.nest_in(self._recorder)
        self._watch = watch

    def fetch(self, _: None) -> Any:
        """What the generator inside makes."""
        return next(self.made)

    def __next__(self) -> Any:
        around, _running.loop = _running.loop, self
        delivered = failed = False
        self._recorder.begin_wait()
        try:
            batch = self.fetch(None)
            delivered = True
        except StopIteration:
            raise
        except BaseException:
            failed = True
            raise
        finally:
            _running.loop = around
            if self._watch is not None:
                self._watch.end_outer_wait(delivered, failed)
            else:
                self._recorder.end_wait(delivered, failed)
        return batch

    def __del__(self) -> None:
        self._recorder.end_loop()  # an iterator that its loader keeps holds it, too

    def __getattr__(self, name: str) -> Any:
        """close, send, gi_frame ...: of the generator."""
        return getattr(self.made, name)


class _Running(threading.local):
    loop: OuterLoop | None = None


_running = _Running()


def around(loader: Any) -> OuterLoop | None:
    """The loop on this thread whose GetNext asks ``loader`` for its iterator."""
    loop = _running.loop
    return loop if loop is not None and loop.inner is loader else None


def patch() -> None:
    """Record the loops over those classes that are imported. Idempotent."""
    for module, (name, inner) in _CLASSES.items():
        kind = getattr(sys.modules.get(module), name, None)
        iterate = getattr(kind, "__iter__", None)
        if kind is not None and iterate is not None and not isinstance(iterate, _core.HookedCall):
            kind.__iter__ = _core.HookedCall(iterate, None, _Begins(inner))


class _Begins:
    def __init__(self, inner: str) -> None:
        self._inner = inner

    def __call__(self, made: Any, loader: Any) -> Any:
        inner = getattr(loader, self._inner)
        record = loaders.record_of(inner)
        if record is None or record.handle.id < 0:
            return None
        if loader.state.process_index != 0:
            record.handle.note("batches_from", "rank 0")
        elif not loader.split_batches and loader.state.num_processes > 1:
            record.handle.note("batches_per_step", str(loader.state.num_processes))
        loop = OuterLoop(made, inner, record.handle)
        return in_its_phase(loop, record.handle, inner, lambda recorded: recorded.made)
