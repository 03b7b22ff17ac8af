"""`Pipeline`: what `source(...).map(...)` builds, and what one iterates over."""

from __future__ import annotations

import atexit
import inspect
import itertools
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from headrace import _core
from headrace.common.handlers import let_through
from headrace.errors import UsageError
from headrace.pipeline import _stages
from headrace.pipeline._stages import Share, whole
from headrace.record.operator import name_of, readable
from headrace.record.session import (
    enabled,
    in_its_phase,
    kept_open,
    loader_handle,
    not_recorded,
    open_session,
    set_in_trial,
)
from headrace.results.report import Report, report_of_loop
from headrace.watch.watching import watch_loader, watched

T = TypeVar("T")

#: Pipelines whose threads must end before the interpreter does.
_running: weakref.WeakSet[_core.NativePipeline] = weakref.WeakSet()


class Pipeline(Generic[T]):
    """A chain of operators; iterating over it is one pass (an epoch).

    Every method that adds an operator returns a new Pipeline and leaves this one as it is. Threads start with
    the first `next` of a pass; between passes they rest; they end with the Pipeline. Passes of the same
    Pipeline are recorded together (see `report`). Concurrent iterators run independently.

    Can be pickled if its functions can; in PyTorch's DataLoader each worker process makes its share.
    """

    def __init__(
        self, start: _stages.Start, stages: tuple[_stages.Stage, ...] = (), record: _Record | None = None
    ) -> None:
        self._start = start
        self._stages = stages
        self._record = record or _Record()
        self._native: _core.NativePipeline | None = None
        self._iterator: weakref.ref[_core.PassIterator] | None = None
        self._pid = 0
        self._sharing = Share()
        #: The numbers that `set_workers` and `set_capacity` asked for, by (which of them, operator).
        self._set: dict[tuple[str, str], int] = {}

    # --- operators ---

    def map(
        self,
        fn: Any,
        workers: int = 1,
        ordered: bool = True,
        executor: str = "thread",
        name: str | None = None,
        *,
        capacity: int | None = None,
        on_error: str = "stop",
        queue: str = "auto",
    ) -> Pipeline[Any]:
        """One item in, one item out: ``fn(item)``, in ``workers`` workers at a time.

        fn: a callable, or a `native_body`. ordered: items leave in the order in which they came, else as they
        are done. executor: "thread" (right for bodies that release the interpreter lock: Pillow, NumPy, file
        reads) or "process" (Python code; the function and the items are pickled, the bytes of arrays travel
        through shared memory). name: default the function's. capacity: of the queue behind; for an ordered
        map the window, finished items that wait for an older one included. on_error: "stop" (the exception
        reaches the loop) or "skip" (the item is left out and counted in `failures`).
        """
        if not callable(fn):
            raise UsageError(f"map takes a function, not {type(fn).__name__}")
        if executor not in ("thread", "process"):
            raise UsageError(f"executor is 'thread' or 'process', not {executor!r}")
        stage: Any = _stages.Map
        if executor == "process":
            from headrace.pipeline._process_map import ProcessMap

            stage = ProcessMap
        called = readable(name or name_of(fn))
        count = whole(workers, "workers")
        return self._with(stage(fn, called, count, ordered, _capacity(capacity), queue, on_error))

    def filter(
        self, fn: Callable[[Any], Any], name: str | None = None, *, on_error: str = "stop"
    ) -> Pipeline[T]:
        """Keep the items for which ``fn(item)`` is true. One thread: put a costly test into a map before."""
        if not callable(fn):
            raise UsageError(f"filter takes a function, not {type(fn).__name__}")
        return self._with(_stages.Filter(fn, readable(name or name_of(fn)), 0, on_error))

    def shuffle(self, buffer: int, seed: int = 0, *, reshuffle: bool = True) -> Pipeline[T]:
        """A random order, drawn from ``buffer`` items. The same for the same seed and pass, whatever the
        workers; ``reshuffle=False``: the same in every pass."""
        return self._with(
            _stages.Shuffle(whole(buffer, "buffer"), whole(seed, "seed", 0) % 2**64, bool(reshuffle))
        )

    def batch(
        self,
        n: int,
        drop_last: bool = False,
        collate: Callable[[list[Any]], Any] | None = None,
        *,
        name: str | None = None,
        capacity: int | None = None,
        on_error: str = "stop",
    ) -> Pipeline[Any]:
        """``n`` items as a list, or as what ``collate(items)`` makes of it. One thread."""
        if collate is not None and not callable(collate):
            raise UsageError(f"collate is a function, not {type(collate).__name__}")
        called = readable(name or (name_of(collate) if collate is not None else "batch"))
        return self._with(
            _stages.Batch(whole(n, "n"), bool(drop_last), collate, called, _capacity(capacity), on_error)
        )

    def prefetch(self, n: int) -> Pipeline[T]:
        """Sets the capacity of the queue after the last operator to ``n`` items."""
        return self._with(_stages.Prefetch(whole(n, "n")))

    def to_device(
        self, device: Any, pin: bool = True, name: str = "to_device", *, capacity: int | None = None
    ) -> Pipeline[Any]:
        """Copy each batch to a device, in a thread of its own, beside the loop's work.

        device: "cpu" (host memory, works everywhere), "cuda", "cuda:1", a torch.device, or a device of
        `headrace.transport` (``HostDevice(bandwidth=...)`` is a slow one on purpose). The batch keeps its
        structure: NumPy arrays, torch tensors and what speaks DLPack are copied, everything else stays. Its
        memory goes back to the device's buffers when the last of its arrays is dropped. pin: pageable memory
        goes through page-locked buffers. capacity: batches that wait on the device. Raises DeviceError for a
        device that is not there.
        """
        from headrace.pipeline._to_device import ToDevice

        return self._with(ToDevice(device, bool(pin), readable(name), _capacity(capacity)))

    # --- running ---

    def __iter__(self) -> Iterator[T]:
        self._open_record()
        native = self._native_now()
        hand_over = self._hand_over()
        loop = None if self._record.handle is None else watched(self._record.handle.id)
        if loop is not None:
            hand_over = loop.seeing(hand_over)
        iterator = _core.PassIterator(native, hand_over)
        if native is self._native:
            self._iterator = weakref.ref(iterator)
        if self._record.handle is None:
            return iterator
        phased: Iterator[T] = in_its_phase(iterator, self._record.handle, self, _unrecorded)
        return phased

    def __len__(self) -> int:
        """Items of one pass. TypeError if the source or an operator cannot know."""
        length = self._start.length()
        for stage in self._stages:
            if length is None:
                break
            length = stage.length(length)
        if length is None:
            raise TypeError("this pipeline cannot know its length before it has run")
        return length

    def __bool__(self) -> bool:
        return True

    def set_workers(self, operator: str, workers: int) -> None:
        """Another worker count, from now on; also while it runs. `names` lists the operators."""
        self._native_now(for_iteration=False).set_workers(operator, whole(workers, "workers"))
        self._set["workers", operator] = int(workers)

    def set_capacity(self, operator: str, capacity: int) -> None:
        """Another capacity of the queue behind an operator, from now on; also while it runs."""
        self._native_now(for_iteration=False).set_capacity(operator, whole(capacity, "capacity"))
        self._set["capacity", operator] = int(capacity)

    @property
    def names(self) -> list[str]:
        """The operators as reports name them, source first."""
        return self._native_now(for_iteration=False).names

    def stop(self) -> None:
        """End the running pass, from any thread: its loop ends."""
        if self._native is not None:
            self._native.stop()

    def close(self) -> None:
        """End the running pass, if any, and wait for its threads. The Pipeline can be used again."""
        if self._native is not None and self._pid == os.getpid():
            self._native.finish()
        self._native = None

    def report(self, epoch: int | None = None) -> Report:
        """The report since the first pass, or of one of them (1 the first, -1 the last).

        May be called while it runs. UsageError if nothing has run, or nothing is recorded.
        """
        return self._record.report(epoch)

    # --- the rest ---

    def _open_record(self) -> None:
        if enabled() and self._record.session is None:
            self._record.open()
            if self._native is not None and self._native.passes == 0:
                # Built by `names` or `set_workers`, before there was a record.
                self._record.take(self._native)

    def _recorded(self) -> _core.LoaderHandle | None:
        """Its record, also before the first pass."""
        self._open_record()
        self._native_now(for_iteration=False)
        return self._record.handle

    def _hand_over(self) -> Callable[[Any], Any] | None:
        if not self._copied_by_last():
            return None
        from headrace.pipeline._to_device import hand_over

        return hand_over

    def _copied_by_last(self) -> bool:
        """True if batches come from a device: the thread that takes one waits for its copy."""
        kinds = [type(stage).__name__ for stage in self._stages]
        while kinds and kinds[-1] in ("Prefetch", "Filter", "Shuffle"):
            kinds.pop()
        return bool(kinds) and kinds[-1] == "ToDevice"

    def _with(self, stage: _stages.Stage) -> Pipeline[Any]:
        if self._copied_by_last():
            from headrace.pipeline._to_device import OnBatch, OnBatches

            if isinstance(stage, _stages.Map):
                stage = replace(stage, taken_by=OnBatch)
            elif isinstance(stage, _stages.Filter):
                stage = replace(stage, body=OnBatch(stage.body))
            elif isinstance(stage, _stages.Batch):
                stage = replace(stage, collate=OnBatches(stage.collate or list))
        made: Pipeline[Any] = Pipeline(self._start, (*self._stages, stage), self._record.fresh())
        # Raises here, not at the first pass, far from the line at fault.
        made._build(Share())
        return made

    def _build(self, share: Share) -> _core.NativePipeline:
        native = self._start.build(share)
        for stage in self._stages:
            stage.add(native)
        return native

    def _native_now(self, for_iteration: bool = True) -> _core.NativePipeline:
        share = _worker_share()
        stale = self._pid != os.getpid() or self._sharing != share
        if self._native is None or stale:
            self._native = self._new(share)
            self._pid, self._sharing = os.getpid(), share
            self._iterator = None
        elif for_iteration and self._iterator is not None:
            last = self._iterator()
            if last is not None and last.active:
                return self._new(share)  # that one continues undisturbed
            if last is not None:
                last.close()  # delivered everything, but the loop stopped before the end (loops that count)
        return self._native

    def _new(self, share: Share) -> _core.NativePipeline:
        native = self._build(share)
        for (what, operator), number in self._set.items():
            (native.set_workers if what == "workers" else native.set_capacity)(operator, number)
        self._record.take(native)
        set_in_trial(lambda: _setters(native), self._record.called)
        _running.add(native)
        return native

    def _recorded_as(
        self, name: str | None, run: str | os.PathLike[str] | None, rank: int | None, watch: bool
    ) -> Pipeline[T]:
        """This pipeline under another name or in another run: what `wrap` returns."""
        return self._again(_Record(name, run, rank, self._record.identity, watch))

    def _unrecorded(self) -> Pipeline[T]:
        """This pipeline, without a record of its passes."""
        return self._again(_NoRecord())

    def _again(self, record: _Record) -> Pipeline[T]:
        made: Pipeline[T] = Pipeline(self._start, self._stages, record)
        made._set = dict(self._set)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Pipeline, (self._start, self._stages, self._record.fresh()), {"_set": dict(self._set)}

    def __repr__(self) -> str:
        chain = " -> ".join([self._start.name, *(stage.name for stage in self._stages)])
        return f"<headrace.Pipeline {chain}>"

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """PyTorch's DataLoader and trainers ask `isinstance(dataset, IterableDataset)`: this is one."""
        data = sys.modules.get("torch.utils.data")
        iterable = getattr(data, "IterableDataset", None)
        return Pipeline if iterable is None else _torch_kind(iterable)


_torch_kinds: dict[type, type] = {}


def _torch_kind(iterable: type) -> type:
    if iterable not in _torch_kinds:
        _torch_kinds[iterable] = type("Pipeline", (Pipeline, iterable), {"__module__": Pipeline.__module__})
    return _torch_kinds[iterable]


def _worker_share() -> Share:
    """In a worker process of a DataLoader: its part of the items."""
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    return Share() if info is None else Share(info.id, info.num_workers)


def _setters(native: _core.NativePipeline) -> dict[str, Callable[[Any], None]]:
    of = {"workers": native.set_workers, "capacity": native.set_capacity}
    return {f"{name}.{what}": partial(put, name) for name in native.names for what, put in of.items()}


def _unrecorded(iterator: _core.PassIterator) -> _core.PassIterator:
    iterator.end_recording()
    return iterator


_records = itertools.count(1)


class _Record:
    """The session that records passes; the first one opens it.

    identity: of the pipeline object. Wrapping the same object again under the same name continues its
    record; another object with the same functions has its own record.
    """

    def __init__(
        self,
        name: str | None = None,
        run: str | os.PathLike[str] | None = None,
        rank: int | None = None,
        identity: int | None = None,
        watch: bool = False,
    ) -> None:
        # A forked child counts on from where its parent was.
        self.identity = identity or next(_records) | os.getpid() << 32
        self.name = name
        self.run = run
        self.rank = rank
        self.watch = watch
        self.session: _core.Session | None = None
        self.handle: _core.LoaderHandle | None = None
        self.recorded: weakref.ref[_core.NativePipeline] | None = None

    @property
    def called(self) -> str:
        """The loader's name in reports."""
        return readable(self.name or "pipeline")

    def fresh(self) -> _Record:
        return _Record(self.name, self.run, self.rank, watch=self.watch)

    def open(self) -> None:
        try:
            self.session = open_session(self.run, self.rank)
        except UsageError:
            raise
        except Exception as error:  # the pass must still run
            let_through(error)
            not_recorded(error)
            return
        if self.run is None:
            kept_open.add(self.session)

    def take(self, native: _core.NativePipeline) -> None:
        """Record ``native``: as this loader, or as another one if an iterator is still running."""
        if self.session is None:
            return
        if self.handle is not None and self.recorded is not None and self.recorded() is None:
            self.recorded = weakref.ref(native)
            native.record_in(self.handle)
            return
        handle = loader_handle(self.session, self.called, None, self.identity)
        if self.watch and handle.id >= 0:
            watch_loader(handle)
        if self.handle is None:
            self.handle, self.recorded = handle, weakref.ref(native)
        native.record_in(handle)

    def report(self, epoch: Any) -> Report:
        if self.handle is None:
            raise UsageError("nothing was recorded yet: iterate over the pipeline first")
        return report_of_loop(self.handle, epoch)


class _NoRecord(_Record):
    def open(self) -> None:
        pass


def _capacity(capacity: int | None) -> int:
    return 0 if capacity is None else whole(capacity, "capacity")


def source(
    iterable: Iterable[T], name: str | None = None, *, capacity: int | None = None, queue: str = "auto"
) -> Pipeline[T]:
    """Items of ``iterable``, iterated anew in every pass (an iterator only once).

    name: default "source", or the class's name if it is one of yours. capacity: of the queue behind it.
    """
    if isinstance(iterable, Pipeline):
        raise UsageError("this is a pipeline already: add operators to it")
    if not hasattr(type(iterable), "__iter__") and not hasattr(type(iterable), "__getitem__"):
        raise UsageError(f"source takes an iterable, not {type(iterable).__name__}")
    kind = type(iterable)
    called = name or ("source" if kind.__module__ in ("builtins", "numpy") else kind.__name__)
    return Pipeline(_stages.Source(iterable, readable(called), _capacity(capacity), queue))


def generator(
    fn: Callable[..., Iterable[T]],
    workers: int = 1,
    name: str | None = None,
    *,
    capacity: int | None = None,
    queue: str = "auto",
) -> Pipeline[T]:
    """Items that ``fn`` makes: it is called at the beginning of every pass and returns an iterable.

    With several workers each calls ``fn(worker, workers)`` and makes its part; items come as they are made.
    A function with two required parameters is called this way with one worker, too.
    """
    if not callable(fn):
        raise UsageError(f"generator takes a function, not {type(fn).__name__}")
    count = whole(workers, "workers")
    sharded = _required_parameters(fn) == 2
    if count > 1 and not sharded:
        raise UsageError(
            "with several workers a generator takes (worker, workers), to make its own part of the items"
        )
    made: Pipeline[T] = Pipeline(
        _stages.Generator(fn, readable(name or name_of(fn)), count, sharded, _capacity(capacity), queue)
    )
    made._build(Share())
    return made


def _required_parameters(fn: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return 0
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(1 for one in parameters if one.kind in positional and one.default is one.empty)


@atexit.register
def _stop_all() -> None:
    for native in list(_running):
        native.finish()
