"""torchrl's replay buffers: each ``sample()`` is a GetNext of the training loop.

Without ``prefetch`` the loop's own thread samples, collates and transforms; with it, so many threads do.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.iterable import IterableAdapter
from headrace.loaders.kit.base import Attachment, classes_of
from headrace.loaders.kit.names import object_name
from headrace.loaders.torch_dataloader.operators import Plan
from headrace.results.loader_model import LoaderBuffer, LoaderModel, LoaderParameter, LoaderStage

_MODULE = "torchrl.data.replay_buffers.replay_buffers"
#: Stages of the model.
_MAKES = 1
_NEEDED = ("_prefetch_cap", "_prefetch_queue", "_collate_fn", "_sample")

_recorded: weakref.WeakKeyDictionary[Any, _Recorder] = weakref.WeakKeyDictionary()


class ReplayBufferAdapter(IterableAdapter):
    """A ``ReplayBuffer``, and those below it."""

    libraries = ("torchrl",)

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of(_MODULE, "ReplayBuffer")) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        missing = next((each for each in _NEEDED if not hasattr(obj, each)), "")
        if missing:
            warn_once(f"operator detail unavailable: {type(obj).__name__} of torchrl has no {missing}")
            return super().attach(obj, name)
        return ReplayAttachment(obj)


class _OfThread(threading.local):
    """Whether this thread is inside of a recorded sampling, and what times it."""

    inside = False
    fetchers: weakref.WeakKeyDictionary[Any, Any] | None = None


_of_thread = _OfThread()


class _Fetcher:
    """What `TimedFetch` needs: an object that makes a batch."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def fetch(self, arguments: Any) -> Any:
        return self.sample(*arguments)


class ReplayAttachment(Attachment):
    def __init__(self, obj: Any) -> None:
        self._recorder = _Recorder(weakref.ref(obj))
        super().__init__(obj, ready=self._recorder.is_ready)

    def opened(self, handle: _core.LoaderHandle) -> None:
        self._recorder.opened(handle)

    def describe(self) -> LoaderModel | None:
        return self._recorder.describe()


class _Recorder:
    """What the sampling of a buffer reports to. Does not keep the buffer."""

    def __init__(self, buffer: weakref.ref[Any]) -> None:
        self._buffer = buffer
        self._loader = -1
        self._level: _core.QueueHandle | None = None
        self._is_named = False

    def opened(self, handle: _core.LoaderHandle) -> None:
        buffer: Any = self._buffer()
        install()
        self._loader = handle.id
        ahead = int(buffer._prefetch_cap)
        if ahead:
            self._level = _core.QueueHandle("prefetch", ahead, handle.id, _MAKES, -1)
        _recorded[buffer] = self

    def fetcher(self, buffer: Any, bare: Any) -> Any:
        """Samples ``buffer`` on this thread, as a call of its operators; keeps no reference to it."""
        fetcher = _Fetcher(bare)
        walk = Plan(self._loader, "prefetch")
        sampler = walk.operator(object_name(buffer._storage), "source", _core.STAGE_DATASET)
        walk.add(None, "sample", bare, lambda: _core.TimedCallable(bare, sampler))
        named, self._is_named = self._is_named, True
        return fetcher, walk.timed(fetcher, not named)

    def is_ready(self) -> bool:
        buffer: Any = self._buffer()
        waiting = list(buffer._prefetch_queue) if buffer is not None else []
        if self._level is not None:
            finished = sum(1 for each in waiting if each.done())
            self._level.sampled(finished, _core.now_ns())
        return bool(waiting) and bool(waiting[0].done())

    def describe(self) -> LoaderModel | None:
        buffer = self._buffer()
        return None if buffer is None else _model_of(buffer)


def _model_of(buffer: Any) -> LoaderModel:
    ahead = int(buffer._prefetch_cap)
    prefetch = LoaderParameter(name="prefetch", value=ahead, usual=0, min=0, sets="workers", stage=_MAKES)
    prefetch.set_in = "pass it to the replay buffer"
    size = LoaderParameter(name="batch_size", value=getattr(buffer, "_batch_size", None))
    runs_in = "thread" if ahead else "loop"
    return LoaderModel(
        framework="torchrl",
        stages=[
            LoaderStage(name="order"),
            LoaderStage(name="prefetch", workers=ahead, runs_in=runs_in, widened_by="prefetch"),
        ],
        # As many batches are made or finished as there are threads.
        buffers=[LoaderBuffer(from_=_MAKES, capacity=1)],
        parameters=[prefetch, *([size] if isinstance(size.value, int) else [])],
    )


def install() -> None:
    """Replay buffers ask from now on whether they are recorded."""
    module: Any = sys.modules[_MODULE]
    kinds = [module.ReplayBuffer]
    for kind in kinds:
        kinds += [each for each in kind.__subclasses__() if each not in kinds]
        bare = vars(kind).get("_sample")
        if bare is not None and not hasattr(bare, "headrace"):
            kind._sample = _asking(bare)


def _asking(bare: Any) -> Any:
    @functools.wraps(bare)
    def asked(self: Any, batch_size: Any) -> Any:
        recorder = None if _of_thread.inside else _recorded.get(self)
        if recorder is None:
            return bare(self, batch_size)
        fetchers = _of_thread.fetchers
        if fetchers is None:
            fetchers = _of_thread.fetchers = weakref.WeakKeyDictionary()
        if self not in fetchers:
            fetchers[self] = recorder.fetcher(self, bare)
        _of_thread.inside = True
        try:
            return fetchers[self][1]((self, batch_size))
        finally:
            _of_thread.inside = False

    asked.headrace = True  # type: ignore[attr-defined]
    return asked


def record_every_loader() -> None:
    """From now on each ``sample()`` of a replay buffer in this process is recorded (``headrace run``)."""
    from headrace.loaders.kit import every_next

    kind = getattr(sys.modules[_MODULE], "ReplayBuffer", None)
    if kind is not None and hasattr(kind, "sample"):
        every_next.patch(kind, ReplayBufferAdapter(), lambda obj: obj in _recorded, method="sample")
