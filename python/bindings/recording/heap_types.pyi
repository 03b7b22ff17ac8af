"""Types of Python's C API in the stub of the native module, which tools/native_files.py writes."""

import types
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar, final

from headrace._core import DeliveryWriter, IteratorWatch, LoaderHandle, OperatorHandle, QueueHandle

_T = TypeVar("_T")

@final
class ThreadQueueHooks:
    """Records one queue of threads: what to call around its puts and gets, whichever thread."""

    def __new__(
        cls,
        handle: QueueHandle,
        room: int,
        started: list[Any],
        size: Callable[[], int] | Sized,
        loop_name: Callable[[], str] | None = None,
        enter: Callable[[], None] | None = None,
        leave: Callable[[Any, bool], None] | None = None,
        room_left: Callable[[], int] | None = None,
        /,
    ) -> ThreadQueueHooks:
        """``room``: 0 for no limit. ``started``: a list; nothing is recorded while it is empty.

        ``size``: the items in the queue now, or their container. ``loop_name``: of the calling thread's loop.
        ``enter``: before a get until recording has started, then before those of the training loop's queue.
        ``leave(item, failed)``: after these. ``room_left``: how many more items may be put, where something
        other than the queue limits that, such as a semaphore.
        """

    # Around a call, without the queue's lock.
    def before_put(self, *args: Any) -> None: ...
    def after_put(self, *args: Any) -> None:
        """Also after a put that failed."""

    def got_room(self, *args: Any) -> None:
        """The wait that `before_put` began has ended; the next put reports it."""

    def before_get(self, *args: Any) -> None: ...
    def after_get(self, item: Any, *args: Any) -> None: ...
    def get_failed(self, *args: Any) -> None: ...
    # Where the queue changes, one at a time.
    def did_put(self, result: Any, item: Any, /) -> None: ...
    def did_get(self, item: Any, /) -> None: ...
    def become_sink(self) -> None:
        """The training loop takes from it."""

@final
class HookedCall:
    """A callable around which hooks run, without a Python frame; in a class it is a method.

    before(*args) may return a tuple that replaces the arguments, after(result, *args) a value that replaces
    the result; failed(*args) runs if ``original`` raised. An exception in a hook changes nothing.
    """

    def __new__(
        cls,
        original: Callable[..., Any] | None,
        before: Callable[..., Any] | None = None,
        after: Callable[..., Any] | None = None,
        failed: Callable[..., Any] | None = None,
        stands_in: bool = False,
    ) -> HookedCall:
        """``stands_in``: in the place of the user's own function, with its class, and pickled by its name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...

@final
class TimedNext:
    """``__next__`` of an iterator class, timed as GetNext of the watch in ``_headrace_watch``."""

    def __new__(cls, original: Callable[..., Any]) -> TimedNext: ...
    def __call__(self, iterator: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...

@final
class TimedFetch:
    """``fetch`` of a fetcher. While it runs, ``swaps`` are in place: (object or None, attribute, bare,
    timed), and the ``calls`` are timed: (object, operator)."""

    def __new__(
        cls,
        fetcher: object,
        swaps: tuple[tuple[Any, str, Any, Any], ...],
        names_functions: bool = ...,
        calls: tuple[tuple[Any, OperatorHandle], ...] = ...,
    ) -> TimedFetch: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...

@final
class TimedDataset:
    """Stands for a dataset while a batch is fetched: reads are timed, the rest is the dataset's own."""

    def __new__(cls, dataset: Any, operator: OperatorHandle) -> TimedDataset: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    @property
    def __getitems__(self) -> Any:
        """Timed as well, if the dataset has it."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def __wrapped__(self) -> Any: ...
    @property
    def headrace_operator(self) -> OperatorHandle: ...

@final
class QueueCall:
    """A put or get that reports each item to a watch or writer.

    role: dispatch, receive, pinned_put, pinned_get in the training process (``told``: an IteratorWatch);
    take, deliver, send in a worker (a DeliveryWriter).
    """

    def __new__(
        cls, role: str, function: Callable[..., Any], told: IteratorWatch | DeliveryWriter, worker: int = -1
    ) -> QueueCall: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...

@final
class QueueMethod:
    """A method of a queue's class that hands the call to the QueueCall in the object's ``attribute``."""

    def __new__(cls, original: Callable[..., Any], attribute: str) -> QueueMethod: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...

@final
class TimedCallable:
    """A callable whose calls are an operator's service time. Every other attribute is the callable's own."""

    def __new__(
        cls,
        callable: Callable[..., Any],  # noqa: A002
        operator: OperatorHandle,
        stands_in: bool = False,
    ) -> TimedCallable:
        """``stands_in``: replaces the user's own object and reports its class."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...
    @property
    def headrace_operator(self) -> OperatorHandle: ...

@final
class TimedIterator(Iterator[Any]):
    """One pass over a wrapped loader: times each GetNext and the time between them."""

    def __new__(
        cls,
        loader: LoaderHandle,
        iterable: Iterable[Any],
        owner: object,
        ready: Callable[[], bool | None] | None = None,
    ) -> TimedIterator:
        """``ready``: see `headrace.loaders.kit.base.Attachment`."""

    def __next__(self) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def __length_hint__(self) -> int: ...
    @property
    def __wrapped__(self) -> Iterator[Any]: ...

@final
class OperatorIterator(Iterator[Any]):
    """An iterator; each item is one call of an operator."""

    def __new__(cls, iterable: Iterable[Any], operator: OperatorHandle, /) -> OperatorIterator: ...
    def __next__(self) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    @property
    def __wrapped__(self) -> Iterator[Any]: ...

class Queue(Generic[_T]):
    """A bounded queue between threads with the methods of queue.Queue, recorded as a queue of the pipeline.

    maxsize 0: unbounded. Raises queue.Empty, queue.Full and queue.ShutDown as queue.Queue does; before
    Python 3.13, which brought the latter, headrace.errors.ShutDown.
    """

    def __init__(self, maxsize: int = 0, name: str | None = None) -> None: ...
    def __class_getitem__(cls, item: Any, /) -> types.GenericAlias: ...
    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None: ...
    def get(self, block: bool = True, timeout: float | None = None) -> _T: ...
    def put_nowait(self, item: _T, /) -> None: ...
    def get_nowait(self) -> _T: ...
    def qsize(self) -> int: ...
    def empty(self) -> bool: ...
    def full(self) -> bool: ...
    def task_done(self) -> None: ...
    def join(self) -> None: ...
    def shutdown(self, immediate: bool = False) -> None: ...
    def _mark_end(self, mark: object, /) -> None: ...
    @property
    def maxsize(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def unfinished_tasks(self) -> int: ...

@final
class SlotLease:
    """Contents of a received slot, as a buffer; the slot is free again when this is destroyed."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
