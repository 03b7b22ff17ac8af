"""Loops over iterators that make each batch of those of a DataLoader inside.

In accelerate's dispatcher, rank 0 takes a batch for each rank, joins them and broadcasts the result; all
ranks wait for that in next(). Other libraries finish a worker's batch in the loop. So GetNext is the outer
iterator's, and what the inner batches were doing meanwhile is what it waited for.

Other loaders keep one iterator for all epochs, as timm's and ultralytics' classes do. Such a class has an
``__iter__`` of its own, mostly a generator. Its torch iterator never ends, so the loops are those over what
``__iter__`` makes: each is an epoch, and the time between two of them is no step.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

from headrace import _core
from headrace.loaders.kit.base import classes_of
from headrace.loaders.kit.names import callers
from headrace.loaders.torch_dataloader import loaders
from headrace.loaders.torch_dataloader.loaders import is_method_of
from headrace.record.session import in_its_phase

#: By module: the class, and its attribute that holds the loader inside.
_CLASSES = {"accelerate.data_loader": ("DataLoaderDispatcher", "base_dataloader")}

#: A place in the model's first stage, which is that of the loop's own thread.
_IN_LOOP = 20
#: By module and name, an iterator around torch's: where that is, and what finishes a batch in the loop.
_finishing: dict[tuple[str, str], tuple[str, str]] = {}


def register(module: str, name: str, inner: str, finishes: str) -> None:
    """Iterators of this class are around one of torch's, ``inner``; they call ``finishes`` for each batch."""
    _finishing[module, name] = inner, finishes


def inside_of(iterator: Any) -> tuple[Any, str] | None:
    """Torch's iterator in one that finishes its batches, and the attribute that does; None: another kind."""
    kind = type(iterator)
    known = _finishing.get((kind.__module__, kind.__name__))
    return None if known is None else (getattr(iterator, known[0]), known[1])


class OuterLoop(Iterator[Any]):
    """One loop: stands in front of the generator that the class made."""

    def __init__(self, made: Any, inner: Any, handle: _core.LoaderHandle) -> None:
        self.inner = inner
        self.made = made
        self._handle = handle
        self._recorder = _core.LoopRecorder(handle)
        self._watch: _core.IteratorWatch | None = None

    def in_its_phase(self, loader: Any) -> Any:
        """This loop over ``loader``; see `in_its_phase`."""
        return in_its_phase(self, self._handle, loader, lambda recorded: recorded.made)

    def adopt(self, watch: _core.IteratorWatch) -> None:
        """The inner loader's iterator is made."""
        watch.nest_in(self._recorder)
        self._watch = watch

    def time(self, owner: Any, attribute: str, name: str) -> None:
        """All that ``owner.attribute`` is called for inside GetNext is one operator of the loop's thread."""
        bare = vars(owner)[attribute]
        operator = _core.OperatorHandle(name, "map", 0, 0, "", self._handle.id, _IN_LOOP)
        timed = _core.TimedCallable(bare, operator, True)
        vars(self)["fetch"] = _core.TimedFetch(self, ((owner, attribute, bare, timed),), False)

    def __len__(self) -> int:
        return len(self.made)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Another epoch of an iterator that its loader keeps."""
        self._recorder.end_loop()
        self._recorder = _core.LoopRecorder(self._handle)
        around, _running.loop = _running.loop, self
        try:
            self.made._reset(loader, first_iter)
        finally:
            _running.loop = around

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
        kind: Any
        for kind in classes_of(module, name):
            if not isinstance(kind.__iter__, _core.HookedCall):
                kind.__iter__ = _core.HookedCall(kind.__iter__, None, partial(_begins, inner))


def _begins(holder: str, made: Any, loader: Any) -> Any:
    """``holder``: the loader's attribute that has the one inside."""
    inner = getattr(loader, holder)
    record = loaders.record_of(inner)
    if record is None or record.id < 0:
        return None
    if loader.state.process_index != 0:
        record.note("batches_from", "rank 0")
    elif not loader.split_batches and loader.state.num_processes > 1:
        record.note("batches_per_step", str(loader.state.num_processes))
    return OuterLoop(made, inner, record).in_its_phase(inner)


#: Attribute of a torch iterator that is recorded.
WATCH = "_headrace_watch"


def kept_iterators(loader: Any) -> list[Any]:
    """Torch's iterators that the loader keeps in its attributes."""
    known = getattr(sys.modules.get("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
    return [] if known is None else [each for each in loader.__dict__.values() if isinstance(each, known)]


def hook(kind: type) -> None:
    """Loops of this class of loaders are known, where it has an ``__iter__`` of its own."""
    if not hasattr(kind, "_get_iterator"):
        return  # another library's, of which only torch's iterators are seen
    owner = next(each for each in kind.__mro__ if "__iter__" in each.__dict__)
    iterate = owner.__dict__["__iter__"]
    if not owner.__module__.startswith(("torch.", "torchdata.")) and not isinstance(
        iterate, _core.HookedCall
    ):
        owner.__iter__ = _core.HookedCall(iterate, None, _loop_begins)  # type: ignore[attr-defined]


def is_being_made(loader: Any) -> bool:
    """Whether a constructor of the loader asks for the iterator, so that no loop begins yet."""
    frames = callers(sys._getframe(1))
    return any(each.f_code.co_name == "__init__" and is_method_of(each, loader) for each in frames)


def _loop_begins(made: Any, loader: Any) -> None:
    if any(each is made for each in kept_iterators(loader)):
        return
    _end_loops(weakref.ref(loader))
    weakref.finalize(made, _end_loops, weakref.ref(loader)).atexit = False


def _end_loops(of: weakref.ref[Any]) -> None:
    loader = of()
    for each in [] if loader is None else kept_iterators(loader):
        if WATCH in each.__dict__:
            each.__dict__[WATCH].end_loop()
