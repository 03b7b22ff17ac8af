"""The native module: recording, reading and judging. All but `Queue` is an implementation detail."""

import os
import types
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, Literal, TypeVar, final

_T = TypeVar("_T")
_StrPath = str | os.PathLike[str]

__version__: str
#: False: this build only reads, and has nothing of what records.

#: The clock of all recordings: CLOCK_MONOTONIC, unless a test's time is virtual (metrics/clock.h).
def now_ns() -> int: ...
def now_s() -> float: ...
def set_virtual_time(is_virtual: bool) -> None: ...
def advance_virtual_time(ns: int, cpu_ns: int) -> None: ...

#: Flags of an `OperatorHandle`.
WRAPPED_OBJECT: int
RUNS_OWN_WORKERS: int
SERIAL: int
OF_THE_LOOP: int
#: What could not be recorded of a framework's loader (`LoaderHandle.miss`).
NO_ITERATOR_DETAIL: int
NO_WORKER_DETAIL: int
NO_HANDOFF_DETAIL: int
#: Positions in the graph of a framework's loader, in the order of the data flow.
LONGEST_MODEL: int
PLACES_PER_STAGE: int
STAGE_SAMPLER: int
STAGE_DATASET: int
STAGE_TRANSFORM: int
STAGE_COLLATE: int

# --- recording ----------------------------------------------------------------------------------------------

@final
class Session:
    """A segment that this process writes to: its own, or another process's."""

    @staticmethod
    def open(run: _StrPath, rank: int, unnamed: bool = False) -> Session:
        """The session of a run folder; empty ``run``: the current one, or a new one in the default folder."""

    @staticmethod
    def attach(path: _StrPath) -> Session:
        """Another process's session, made current. Raises SegmentError if it is gone."""

    def push(self) -> None: ...
    def pop(self) -> None: ...
    def close(self) -> None:
        """Write the last copy to the run folder. What is recorded afterwards is lost."""

    def take_messages(self) -> list[str]:
        """Errors with files, and the path of an unnamed run: each line once."""

    @property
    def run(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def owner(self) -> bool:
        """True in the process that opened it."""

    @property
    def live_path(self) -> str:
        """Where other processes attach; empty for anonymous memory."""

def current_session() -> Session | None: ...
def leave_session(session: Session) -> None: ...
def disable() -> None: ...
def close_all() -> list[str]:
    """Closes every session. Returns their messages."""

def before_fork() -> None:
    """Ends the threads of the recorder, so that CPython counts only the program's while it forks."""

def after_fork_in_parent() -> None:
    """Starts them again. Calls come in pairs; of forks that overlap, the last one starts them."""

@final
class ComparedReports:
    """Two sides of parsed reports, compared once."""

    def __init__(
        self, a: list[ParsedReport], b: list[ParsedReport], name_a: str = "A", name_b: str = "B"
    ) -> None: ...
    def text(self, width: int, color: bool) -> str: ...
    def html(self, whole_page: bool = True) -> str: ...
    def headline(self) -> str: ...
    def json(self, indent: int) -> str: ...

@final
class OperatorHandle:
    """One operator, in whatever session is current when it runs."""

    def __init__(
        self,
        name: str,
        kind: str,
        key: int = 0,
        flags: int = 0,
        parameter: str = "",
        loader: int = -1,
        stage: int = 0,
    ) -> None:
        """``parameter``: the parameter that sets its workers; ``x<=8``: that is x, and at most 8 can be busy.
        ``loader``, ``stage``: the loader whose own graph it belongs to, and its index there."""

    def begin(self) -> bool:
        """False if nothing is recorded; ``end`` is then not called."""

    def end(self, failed: bool) -> None: ...
    def sampled_functions(self, lines: str) -> None:
        """Which functions take its time: "name<tab>share<newline>" each. On a thread that records."""

    def declare(self, inputs: Iterable[Queue[Any]], outputs: Iterable[Queue[Any]]) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> int: ...
    @property
    def loader(self) -> int: ...
    @property
    def stage(self) -> int: ...

@final
class OverlappingCalls:
    """Calls of one operator that overlap on one thread: the coroutines of an event loop."""

    def __init__(self, operator: OperatorHandle) -> None: ...
    def done(self, began_ns: int, failed: bool) -> None:
        """A call that began at ``began_ns`` has ended; what it awaited counts as its time."""

@final
class QueueHandle:
    """A queue between two stages of a loader's model, as indices; ``to_stage`` -1: the training loop.

    The queue reports its level after each put and get, one at a time.
    """

    def __init__(self, name: str, capacity: int, loader: int, from_stage: int, to_stage: int) -> None: ...
    @staticmethod
    def of_threads(name: str, capacity: int, is_fifo: bool = True) -> QueueHandle:
        """A queue of the user's own, between the threads that put and take; ``capacity`` 0: no limit.

        is_fifo: first in, first out, so the age of each item is known.
        """

    def put(self, level: int, waited_ns: int = 0, counts: bool = True) -> None:
        """``waited_ns``: how long it waited for room. ``counts``: False for a mark that is not an item."""

    def get(self, level: int, waited_ns: int = 0, counts: bool = True, age_ns: int = -1) -> None:
        """``age_ns``: since the item was put; below 0: as its put was seen."""

    def sampled_functions(self, loop_name: str, puts: bool, lines: str) -> None:
        """As `OperatorHandle.sampled_functions`, of a thread whose first call of this queue was a put."""

    def begin(self) -> bool:
        """It is there, and empty, from now on; else from the first call that tells of it."""

    def sampled(self, level: int, at_ns: int) -> None:
        """It held ``level`` items at ``at_ns`` (the monotonic clock), until the next call says otherwise."""

    @property
    def name(self) -> str: ...
    @property
    def capacity(self) -> int: ...

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
class LoaderHandle:
    """One wrapped loader's record in a session."""

    def __init__(
        self, session: Session, name: str, source: OperatorHandle | None, identity: int = 0
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def session(self) -> Session: ...
    @property
    def id(self) -> int:
        """Its number in the run; below 0 if the run has no room for it."""

    def describe(self, model: str, workers: int) -> None:
        """Its `LoaderModel` as JSON, and how many workers it has; from now on it has its own graph."""

    def put_in_front(self, stages: int) -> None:
        """Moves its operators so far this many stages on: others that feed it come first in its model."""

    def add_operator(self, operator: OperatorHandle) -> None:
        """Shows the operator in this loader's graph, also when it is never called."""

    def miss(self, gap: int) -> None:
        """Something of it cannot be recorded: one of the NO_..._DETAIL."""

    @property
    def steps(self) -> int:
        """Batches that its loops have taken so far."""

    @property
    def in_next(self) -> tuple[int, bool]:
        """The thread of this process that is in its GetNext (0: none); whether it is its loop's first one."""

    @property
    def computes(self) -> int:
        """Steps whose compute is complete: not that of a loop that was left in the middle of one."""

    @property
    def active(self) -> int:
        """Its loops that run now."""

    def note(self, key: str, value: str) -> None:
        """A fact about it that verdicts use; the first one of a key stays."""

    def set_ceiling(self, step_s: float) -> None:
        """Seconds of a step over cached batches, measured."""

    def profile_json(self, epoch: int = 0) -> str:
        """A `Profile` in JSON; epochs count from 1, negative ones from the end, 0 is everything."""

@final
class IteratorWatch:
    """The loop over one iterator of a framework's loader, and where its batches are."""

    def __init__(self, loader: LoaderHandle, begins: bool = True) -> None:
        """``begins``: the loop begins now; False: with its first GetNext."""

    def follow(self, workers: int, window: int, in_order: bool, pins: bool, pass_number: int) -> None:
        """Follow the batches of its worker processes; ``window`` of them are in flight at most."""

    def dispatched_at_start(self, worker: int, batch: int) -> None:
        """The number of a batch was given to a worker while the iterator was being made."""

    def restart(self) -> None:
        """This iterator begins another epoch."""

    def end_loop(self) -> None:
        """The loop over it ends; another one begins with its next GetNext."""

    def nest_in(self, outer: LoopRecorder) -> None:
        """Its batches are parts of those of an iterator around it, whose GetNext calls ``outer`` records."""

    def end_outer_wait(self, delivered: bool, failed: bool) -> None:
        """The GetNext around it is over, which its batches kept waiting."""

    @property
    def loader(self) -> LoaderHandle: ...
    def end(self) -> None: ...

@final
class LoopRecorder:
    """One pass of a loop without an iterator: its waits are marked by the thread that runs it."""

    def __init__(self, loader: LoaderHandle) -> None:
        """The loop begins now."""

    def begin_wait(self) -> None: ...
    def end_wait(self, delivered: bool, failed: bool, ready: int = -1) -> None:
        """Not ``delivered``: the loop ends. ``failed``: by an exception, after which it may go on.

        ``ready``: 1 or 0, whether the batch was there when it was asked for; -1: the queues tell.
        """

    def end_loop(self) -> None: ...

@final
class DeliveryWriter:
    """Events of a worker process for the training process: when it took, made and sent each batch."""

    @staticmethod
    def enter(loader: int, pass_number: int, number: int, siblings: int) -> DeliveryWriter | None:
        """Enter the calling thread as worker ``number``; None if nothing is recorded."""

def note_device(device: str) -> None:
    """The loop that runs on this thread copies its batches to ``device``: one more setting of its loader."""

def next_pass() -> int:
    """A number that distinguishes the workers of this iterator from all others."""

def note(loader: int, key: str, value: str) -> None:
    """`LoaderHandle.note`, from a worker process."""

def miss(loader: int, gap: int) -> None:
    """`LoaderHandle.miss`, from a worker process."""

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

# --- reading ------------------------------------------------------------------------------------------------

def default_run_folder() -> str: ...
def default_run_is_unnamed() -> bool:
    """The default folder has nothing but date, time and pid for a name."""

def make_run_folder(run: _StrPath) -> str:
    """Creates it, private, with its parents. Returns "" or the reason why not."""

def remove_run_folder(run: _StrPath) -> None:
    """Removes it if it contains only files that Headrace wrote."""

def collect_orphans(run: _StrPath) -> None:
    """Moves the recordings of killed processes to their run folders."""

def missing_recordings(run: _StrPath) -> list[str]:
    """A line for each unreadable recording, with the reason."""

def default_rank() -> int: ...
def remote_owner() -> int:
    """What requests of this thread are charged to: 0 where nothing is recorded."""

@final
class RemoteCall:
    """One request to a remote service. Dropped before its end, it ends then."""

    @staticmethod
    def begin(
        owner: int, target: bytes, is_retry: bool = False, backoff_ns: int = 0, pause_ns: int = -1
    ) -> RemoteCall | None:
        """From now on. None: nothing is recorded. ``owner`` 0: `remote_owner` of this thread.

        ``target`` names the object (host, path, range); two bits of its hash are kept. ``is_retry``: the same
        was refused ``backoff_ns`` ago. ``pause_ns``: for how long the thread that waits asked for nothing,
        where that is another thread.
        """

    def answered(self, status: int) -> None: ...
    def ended(self, body_bytes: int) -> None:
        """The body is here. Counts once."""

    def failed(self, body_bytes: int) -> None:
        """There is no answer, or it broke off after so many bytes. Counts once."""

def collections_s() -> float:
    """In the garbage collector, all threads, since the first wrapped loop."""

def note_collection(phase: str, info: Any) -> None:
    """An entry for ``gc.callbacks``."""

def find_segments(run: _StrPath) -> list[dict[str, Any]]:
    """``{"path", "rank", "running"}`` for each recording of a run folder."""

def segment_loaders(path: _StrPath) -> list[dict[str, Any]]:
    """``{"index", "name", "steps", "wait_s", "first_batches_s", "compute_s", "epochs", "superseded"}`` of
    each loader, the one that waited longest first, those that go on under another name last."""

def segment_profile_json(path: _StrPath, loader: int) -> str: ...

@final
class SegmentImage:
    """What a segment held at one moment."""

    def __init__(self, path: _StrPath) -> None: ...
    def loaders(self) -> list[dict[str, Any]]: ...
    def profile_json(self, loader: int, since: SegmentImage | None = None) -> str:
        """A `Profile` as JSON: of the whole run, or of what came after ``since``, an earlier image of it."""

@final
class LoopTotals:
    """What a loop's counters say at one moment, as declared in profile/loop_totals.h. Times are seconds."""

    @property
    def rank(self) -> int: ...
    @property
    def running(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def died(self) -> bool: ...
    @property
    def at_s(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def wait_s(self) -> float: ...
    @property
    def stalled_s(self) -> float: ...
    @property
    def recent_s(self) -> float: ...
    def waits(self) -> tuple[list[tuple[float, float, int]], float]:
        """Lower and upper end and count of the buckets that are not empty, and the sum: of GetNext waits."""

    def step_times(self) -> tuple[list[tuple[float, float, int]], float]:
        """The same of steps."""

def loop_totals(image: SegmentImage, loader: int) -> LoopTotals: ...
def exposed_wait(since: LoopTotals | None, now: LoopTotals) -> tuple[float, float]:
    """Share of the time, and how long that is; None: of the last minute or the last 512 steps."""

@final
class StragglerWatch:
    """Which rank holds the others up, as declared in analysis/cluster/straggler_watch.h. Not thread-safe."""

    def __init__(self) -> None: ...
    def look(self, now_s: float, ranks: Sequence[LoopTotals]) -> dict[str, Any] | None:
        """The totals of one loader on each rank; "rank", "chronic", "z", "slowest", "blocks", "late_s",
        "late_share", "by"."""

def watch_batches(function: Callable[[int, Any, int, int, Any], bool] | None) -> None:
    """``function(loader, iterator, number, worker, batch)`` is called with each batch that a recorded loop
    takes; -1: not known. Its time is not the step's where it returns True. What it raises is forgotten."""

def calls_can_be_timed(called: object, /) -> bool:
    """Whether `TimedFetch` can time calls of this object: its class was defined in Python."""

def local_variables(frame: types.FrameType) -> dict[str, Any]:
    """The variables of a function that are set now, in a new dict: `frame.f_locals` would share its dict with
    the function's `locals()`."""

def raised_by_signal_handler(error: BaseException) -> BaseException | None:
    """The exception that a signal's handler raised: this one, or one that it was raised from."""

def current_frames() -> dict[int, types.FrameType]:
    """`sys._current_frames`, without a garbage collection meanwhile, which may end in a deadlock."""

def calls_of_thread(thread: int, deepest: int = 1000) -> list[tuple[types.CodeType, int, str]]:
    """Code, line and package of each call of a thread, the innermost first; empty if it is gone. Nothing that
    its functions hold is kept alive."""

def calls_of_threads(deepest: int) -> dict[int, list[tuple[types.CodeType, int, str]]]:
    """The same of all threads."""

def look_into_batches(function: Callable[[int, Any], bool] | None) -> None:
    """``function(loader, batch)``: as above, with some batches only: each of a loader's first 64, then 32 of
    every time twice as many."""

#: Least, largest, mean and deviation of the finite numbers, how many they are, how many others.
_Moments = tuple[float, float, float, float, int, int]

def array_statistics(
    address: int, dtype: str, rows: int, parts: int, part_size: int
) -> tuple[_Moments, list[_Moments], list[float], list[int], list[int]]:
    """Of ``rows`` x ``parts`` x ``part_size`` contiguous elements: all, each part, the largest magnitude of
    each row, rows with numbers that are not finite, rows of one value. The memory must stay."""

def row_hashes(address: int, rows: int, row_bytes: int, salt: int) -> list[int]: ...
def with_run_files(profile_text: str, beside: str) -> str:
    """The profile with the "findings" and the "budget" of a JSON object."""

def profile_schema() -> str:
    """The declared figures of a profile, as JSON."""

def add_ranks(profile_text: str, others: Sequence[tuple[_StrPath, int, int]]) -> str: ...
def beside_ranks(profile_text: str, others: Sequence[str]) -> str:
    """The profile with the figures of the same loader in other ranks, given as profiles."""

def merge_timeline(
    segments: Sequence[_StrPath],
    traces: Sequence[_StrPath],
    out: _StrPath,
    progress: Callable[[float], object] | None,
) -> dict[str, Any]:
    """``{"path", "slices", "counters", "flows", "bytes", "clock_error_s", "notes"}``. Ctrl-C ends it."""

@final
class ParsedReport:
    """A profile with its diagnosis, read once. Immutable. Raises FormatError if the text is not a profile."""

    def __init__(self, profile_text: str) -> None: ...
    def curve(self) -> tuple[str, int, list[tuple[int, float, float, float, str]]]:
        """Parameter, its value now, and for each value: step, low, high in seconds, and the limit then."""

    @property
    def loader(self) -> str: ...
    @property
    def rank(self) -> int: ...
    def verdict(self) -> tuple[str, str, str, float, float, str, float | None]:
        """Kind, operator and cause ("": none), share of the wait, step in seconds, the loader, and the gain
        of an input that is never waited for (None: not known): for lists of runs."""

    def text(self, width: int, color: bool) -> str: ...
    def html(
        self,
        whole_page: bool,
        segment: str = "",
        from_s: float = 0.0,
        to_s: float = 0.0,
        range_link: str = "",
    ) -> str:
        """segment: of the run, for the lanes; range_link: the address to which "from=1.5&to=2.5" is added."""

    def json(self, indent: int) -> str: ...
    def what_if(self, assigned: list[tuple[str, str]]) -> tuple[bool, str, float, float, float, str]:
        """Whether it is known, the reason if not; step, low and high in seconds; the bottleneck."""

def page_style() -> str:
    """The style sheet of report pages, in its ``<style>`` elements."""

# --- pipelines ----------------------------------------------------------------------------------------------

@final
class NativeBody:
    """A C function as the body of a map."""

    def __init__(self, function: int, context: int, output_bytes: int, owner: object) -> None: ...
    @staticmethod
    def from_capsule(capsule: object, output_bytes: int) -> NativeBody: ...
    def __call__(self, item: Any) -> bytearray: ...

@final
class NativePipeline:
    """Operators, threads and queues of a `headrace.Pipeline`."""

    def __init__(
        self,
        name: str,
        begin: Callable[[int, int, int], Iterator[Any]],
        workers: int = 1,
        capacity: int = 0,
        queue: str = "auto",
        kind: str = "generator",
    ) -> None:
        """``begin(worker, workers, pass)`` returns the iterator of one worker's items."""

    def map(
        self,
        name: str,
        body: Callable[[Any], Any],
        workers: int = 1,
        ordered: bool = True,
        capacity: int = 0,
        queue: str = "auto",
        on_error: str = "stop",
        in_processes: bool = False,
        kind: str = "map",
    ) -> None: ...
    def map_native(
        self,
        name: str,
        body: NativeBody,
        workers: int = 1,
        ordered: bool = True,
        capacity: int = 0,
        queue: str = "auto",
        on_error: str = "stop",
    ) -> None: ...
    def filter(
        self, name: str, body: Callable[[Any], Any], capacity: int = 0, on_error: str = "stop"
    ) -> None: ...
    def shuffle(self, buffer: int, seed: int, every_pass_alike: bool = False) -> None: ...
    def batch(
        self,
        size: int,
        drop_last: bool = False,
        collate: Callable[[list[Any]], Any] | None = None,
        name: str = "batch",
        capacity: int = 0,
        on_error: str = "stop",
    ) -> None: ...
    def prefetch(self, capacity: int) -> None: ...
    def record_in(self, loader: LoaderHandle) -> None: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def passes(self) -> int: ...
    def set_workers(self, op: str, workers: int) -> None: ...
    def set_capacity(self, op: str, capacity: int) -> None: ...
    def workers(self, op: str) -> int: ...
    def capacity(self, op: str) -> int: ...
    def stop(self) -> None: ...
    def finish(self) -> None: ...

@final
class SlotLease:
    """What was received in a slot, as a buffer; the slot is free again when this is gone."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class SlotWriter:
    """A claimed slot that is being filled; free again if destroyed without `sent`."""

    def write(self, offset: int, source: Any) -> None: ...
    def sent(self) -> None: ...
    @property
    def number(self) -> int: ...
    @property
    def descriptor(self) -> int:
        """To be sent along; -1 if the reader has it."""

    @property
    def is_lent(self) -> bool:
        """The reader has to copy its contents."""

@final
class SlotSender:
    """Shared memory that this process fills and one other reads, within ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None: ...
    def claim(self, size: int) -> SlotWriter: ...
    @property
    def bytes(self) -> int: ...

@final
class SlotReceiver:
    """The reader's side."""

    def __init__(self) -> None: ...
    def add(self, number: int, fd: int) -> None: ...
    def lease(self, number: int) -> SlotLease: ...
    @staticmethod
    def borrow(fd: int) -> SlotLease: ...

def await_answer(socket: int, process: int) -> int:
    """Waits without the interpreter lock. 1: something can be read; 0: this thread's pass was
    stopped; -1: the process is gone and nothing is left to read."""

def end_with(parent: int) -> None:
    """This process ends as soon as ``parent``, which started it, has ended."""

def served(began_ns: int, ended_ns: int, cpu_ns: int) -> None:
    """In a body that waited for another process: when the work was done there."""

def process_starting() -> None: ...
def process_started() -> None: ...

@final
class PassIterator:
    """One pass over a NativePipeline; dropped early, it ends the pass."""

    def __init__(self, of: NativePipeline, hand_over: Callable[[Any], Any] | None = None) -> None:
        """hand_over: called with each item in the thread that takes it, and returns what the loop gets."""

    def __iter__(self) -> PassIterator: ...
    def __next__(self) -> Any: ...
    def close(self) -> None: ...
    def end_recording(self) -> None:
        """The rest of the pass is not part of the recorded loop."""

    @property
    def active(self) -> bool: ...

def current_operator() -> OperatorHandle | None:
    """In a body: the operator whose worker calls it."""

def pass_is_over() -> bool:
    """In a body: True if its pass was stopped, so waiting is pointless."""

# --- transport ----------------------------------------------------------------------------------------------

#: The name under which the CUDA driver's library is loaded.
CUDA_LIBRARY: str

@final
class DeviceArray:
    """An array in a device's buffer, which it keeps: buffer protocol (host memory alone) and DLPack."""

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def tobytes(self) -> bytes:
        """The elements, copied back; waits for the copy."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def format(self) -> str:
        """The element type in the format of the buffer protocol."""

    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str: ...

@final
class CopiedBatch:
    """Arrays that were copied together, and the cost of the copy."""

    @property
    def arrays(self) -> list[DeviceArray]: ...
    @property
    def bytes(self) -> int: ...
    @property
    def pinned_bytes(self) -> int: ...
    @property
    def pageable_bytes(self) -> int: ...
    @property
    def buffer_wait_s(self) -> float: ...
    @property
    def completion(self) -> Completion: ...

@final
class Completion:
    """Progress of a copy; keeps none of its arrays."""

    def done(self) -> bool: ...
    def wait(self) -> None: ...
    @property
    def copy_s(self) -> float | None:
        """None while the copy runs."""

@final
class TransportDevice:
    """A device with its ring of buffers."""

    @property
    def name(self) -> str: ...
    @property
    def buffers(self) -> int: ...
    @property
    def free_buffers(self) -> int: ...
    def copy(self, arrays: Iterable[Any], timeout_s: float | None = None) -> CopiedBatch:
        """Copy objects with the buffer protocol or DLPack, all into one buffer."""

    def cancel(self) -> None: ...
    def resume(self) -> None: ...

def open_device(
    name: str,
    buffers: int,
    buffer_bytes: int,
    max_buffer_bytes: int,
    bandwidth: float | None,
    pin: bool,
    cuda_library: str,
) -> TransportDevice: ...
def available_devices(cuda_library: str) -> list[str]: ...
def transferred(
    operator: OperatorHandle,
    *,
    copies: int = 0,
    bytes: int = 0,  # noqa: A002 - the field's word
    pinned_bytes: int = 0,
    pageable_bytes: int = 0,
    timed_bytes: int = 0,
    copy_s: float = 0.0,
    buffer_wait_s: float = 0.0,
) -> None:
    """What the calling thread copied as this operator; figures add up."""

# --- named ranges -------------------------------------------------------------------------------------------

def annotate_begin(name: str) -> None:
    """Never raises; does nothing if nothing is recorded."""

def annotate_end() -> None: ...

# --- marks within a training step ---------------------------------------------------------------------------

def forward_began() -> None:
    """From any thread; the first in a step counts. Does nothing if no wrapped loop runs. Never raises."""

def backward_ended() -> None:
    """The same; the last in a step counts."""

def update_began() -> None:
    """The same; counts as the end of backward if there is no other mark."""

def step_begin() -> None:
    """`forward_began` and the beginning of a range "step"."""

def step_end() -> None:
    """`backward_ended` and the end of that range."""

# --- device traces ------------------------------------------------------------------------------------------

@final
class Columns:
    """Named columns of one length in C++ memory. Read-only."""

    @staticmethod
    def of(columns: list[tuple[str, list[int] | list[float] | list[str]]], notes: list[str]) -> Columns: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def rows(self) -> int: ...
    @property
    def notes(self) -> list[str]: ...
    def is_text(self, name: str) -> bool: ...
    def values(self, name: str) -> list[Any]:
        """As Python objects. Raises UsageError if there is no such column, like the other methods."""

    def view(self, name: str) -> Any:
        """A NumPy view of the numbers; of texts that are stored once: their numbers."""

    def texts(self, name: str) -> list[str]:
        """The texts that a column's numbers refer to."""

    def describe(self) -> list[tuple[str, str, str]]:
        """Name, unit and how to read it, of each column; empty texts where the name says it."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class TraceSet:
    """The device traces of one or several ranks. Read-only."""

    def __len__(self) -> int: ...
    def one(self, index: int) -> TraceSet: ...
    @property
    def ranks(self) -> list[int]: ...
    def facts(self, index: int) -> dict[str, Any]:
        """Result of reading a file: path, rank, sizes, notes, and the other keys of the file as JSON."""

    def events(self, index: int) -> Columns: ...
    def resolved(self, index: int) -> Columns: ...
    def argument(self, index: int, name: str) -> Columns: ...
    def lanes(self, index: int) -> list[dict[str, Any]]: ...

def holds_pickle(path: str) -> bool: ...

@final
class MemorySnapshot:
    """The columns of a memory snapshot. Read-only, so any thread may use it."""

    def __init__(self, path: str) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def events(self) -> int: ...
    @property
    def segments(self) -> int: ...
    def peak(self) -> Columns: ...
    def holders(self) -> Columns: ...
    def fragmentation(self) -> Columns: ...
    def oom(self, device_bytes: int) -> Columns: ...
    def growth(self) -> Columns: ...
    def actions(self) -> Columns: ...
    def over_time(self, moments: int, places: int) -> Columns: ...

@final
class MemoryLevels:
    """Memory of a device at moments that follow each other, as declared in report/memory.h."""

    def __init__(
        self,
        title: str,
        places: Sequence[str],
        held_bytes: Sequence[Sequence[float]],
        highest: str,
        begins: str,
        ends: str,
    ) -> None: ...

def memory_page(
    title: str,
    is_bad: bool,
    findings: Sequence[str],
    devices: Sequence[MemoryLevels],
    tables: Sequence[ClusterTable],
    remarks: Sequence[str],
) -> str: ...

@final
class ProfileFolder:
    """A folder that an Ascend profiler wrote. Files that it does not have are empty."""

    @property
    def path(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def trace_view(self) -> str: ...
    @property
    def database(self) -> str: ...
    @property
    def events_file(self) -> str: ...

def find_profiles(path: str) -> list[ProfileFolder]: ...
def profile_of(file: str) -> ProfileFolder | None: ...
def advice(traces: TraceSet, profiles: Sequence[ProfileFolder]) -> Columns: ...
def has_cluster_summary(folder: str) -> bool: ...
def cluster(
    traces: TraceSet, profiles: Sequence[ProfileFolder], summary: str
) -> tuple[Columns, Columns, Columns, Columns, Columns, Columns]: ...
def profile_tables(profiles: Sequence[ProfileFolder]) -> list[str]: ...
def profile_table(profiles: Sequence[ProfileFolder], name: str) -> Columns: ...

@final
class JobSimulation:
    """What a job's steps would take; `Job` of headrace.job explains it."""

    def __init__(
        self,
        type: Sequence[str],  # noqa: A002
        dp_rank: Sequence[int],
        stage: Sequence[int],
        step: Sequence[int],
        start_s: Sequence[float],
        duration_s: Sequence[float],
        sequence: Sequence[int],
        chunk: Sequence[int],
        model_chunk: Sequence[int],
        micro_batch: Sequence[int],
        input_s: Sequence[float],
        kernel: Sequence[int],
    ) -> None: ...
    @property
    def steps(self) -> list[int]: ...
    @property
    def dp_ranks(self) -> list[int]: ...
    @property
    def stages(self) -> list[int]: ...
    @property
    def kinds(self) -> list[str]: ...
    @property
    def unpaired(self) -> int: ...
    def recorded_s(self) -> list[float]: ...
    def step_s(
        self,
        *,
        dp_rank: int | None = None,
        stage: int | None = None,
        kind: str | None = None,
        workers: Sequence[tuple[int, int]] = ...,
        others: bool = False,
        delays: Literal["none", "recorded", "without_input"] = "none",
    ) -> list[float]: ...

def job_operations(
    traces: TraceSet, rank: int, steps: Sequence[int], stages: Sequence[Sequence[int]]
) -> tuple[str, bool, dict[str, Any]]:
    """What the first trace does not record, whether it was expected to, and columns for a JobSimulation.

    As declared in analysis/device/job_operations.h.
    """

#: Rank, stage, its columns in memory (steps as int64, step times and own times in seconds as float32), and
#: the shortest step in seconds that its input allows.
_RankColumns = Sequence[tuple[int, int, bytes, bytes, bytes, float]]

def slow_ranks(ranks: _RankColumns) -> dict[str, Any]:
    """The verdict on a job, as declared in analysis/cluster/slow_ranks.h.

    ``ranks`` has tuples: rank, steps, step_s, own_s, late_s, late_share, last_share.
    """

def in_step(ranks: _RankColumns) -> bool:
    """Whether the ranks meet in every step, as declared in analysis/cluster/slow_ranks.h."""

def link_text(traces: TraceSet, profile: ProfileFolder | None, steps: Sequence[int]) -> tuple[str, list[str]]:
    """The first rank's records of links, as declared in analysis/cluster/link_records.h, and notes."""

def parallel_places(traces: TraceSet, profile: ProfileFolder | None, rank: int) -> list[tuple[str, int, int]]:
    """Role, index and size of the rank's groups, as declared in trace/process_groups.h."""

def judge_links(ranks: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """Links of a job by rank and `link_text`, as declared in analysis/cluster/links.h."""

def ranks_of_text(text: str) -> list[int]:
    """Ranks of "0-7", "0-56/8", "1,4,9"; empty for other texts."""

def stage_balance(ranks: _RankColumns) -> dict[str, Any]:
    """As declared in analysis/cluster/stages.h; ``stages`` has tuples: stage, ranks, own_s, beyond_share."""

@final
class ClusterTable:
    """A table of the page of a job."""

    def __init__(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None: ...

@final
class ClusterPage:
    """The texts of the page of a job, as declared in report/cluster.h."""

    title: str
    kind: str
    is_bad: bool
    summary: str
    why: str
    advice: list[str]
    columns: list[str]
    rows: list[list[str]]
    tables: list[ClusterTable]
    remarks: list[str]

@final
class TuningPoint:
    """A change with a prediction, as declared in report/tuning.h. Seconds a step; NaN: unknown."""

    def __init__(
        self,
        label: str,
        predicted_s: float,
        low_s: float,
        high_s: float,
        measured_s: float,
        error_s: float,
    ) -> None: ...

@final
class TuningPage:
    """The texts of the page of a search for parameters, as declared in report/tuning.h."""

    def __init__(
        self,
        headline: str,
        about: str,
        points: Sequence[TuningPoint],
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        remarks: Sequence[str],
        curve: tuple[str, int, Sequence[tuple[int, float, float, float, str]]],
        measured: Sequence[tuple[int, float]],
    ) -> None: ...
    def html(self, whole_page: bool) -> str: ...

def cluster_page(ranks: _RankColumns, worst: Sequence[int], page: ClusterPage) -> str: ...
def step_without(ranks: _RankColumns, without: Sequence[int]) -> float | None: ...
def lateness(ranks: _RankColumns, steps: Sequence[int]) -> list[float]:
    """How late each rank is in each of the steps, rank by rank; NaN where it has no such step."""

@final
class TraceLoader:
    """Reads files in parallel; another thread may read the progress."""

    def __init__(self, paths: list[str], arguments: list[tuple[str, str]], ranks: list[int]) -> None: ...
    def load(self) -> TraceSet:
        """Raises FormatError for a file that is not a trace."""

    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_total(self) -> int: ...

def traced_input(traces: TraceSet) -> str | None:
    """The profile of the input that the first trace shows, as JSON."""

def with_device(
    profile_text: str, traces: TraceSet, segment: str, fp_point: str, bp_point: str
) -> tuple[str, bool]:
    """The profile with what the device did; ``segment``: of the run, for its GetNext waits, or empty.

    ``fp_point``, ``bp_point``: names of the points of a step, or empty.
    """

def write_with_counters(
    traces: TraceSet, out: str, steps: list[int], opened: Callable[[], Any] | None
) -> dict[str, Any]:
    """Writes the file of the first trace with counters after its events.

    ``opened``: returns the file, with ``read(n)``, if the path cannot be opened.
    """

def load_trace_sources(sources: list[tuple[str, Any]], arguments: list[tuple[str, str]]) -> TraceSet:
    """Reads open files, one after the other: pairs of a name and an object with ``read(n)``."""

@final
class CriticalPath:
    """The longest path through what happened on host and device, of one rank."""

    @property
    def path(self) -> Columns: ...
    @property
    def summary(self) -> Columns: ...
    @property
    def length_ns(self) -> int: ...
    @property
    def valid(self) -> bool: ...
    def nodes(self) -> Columns: ...
    def edges(self) -> Columns: ...

# The analyses of device traces; `headrace.Trace` documents them.
def time_breakdown(traces: TraceSet, steps: list[int], per_device: bool) -> Columns: ...
def overlap(traces: TraceSet, steps: list[int], per_device: bool) -> Columns: ...
def kernel_breakdown(traces: TraceSet, steps: list[int], per_device: bool) -> Columns: ...
def kernels(
    traces: TraceSet, steps: list[int], memory: bool, most_names: int, time_share: float
) -> Columns: ...
def idle_breakdown(
    traces: TraceSet, steps: list[int], consecutive_kernel_delay_s: float
) -> tuple[Columns, Columns]: ...
def queue_length(traces: TraceSet, steps: list[int], capacity: int) -> tuple[Columns, Columns]: ...
def memory_bandwidth(traces: TraceSet, steps: list[int]) -> tuple[Columns, Columns]: ...
def memory_use(traces: TraceSet, steps: list[int]) -> Columns: ...
def launches(traces: TraceSet, steps: list[int], memory: bool) -> Columns: ...
def annotations(
    traces: TraceSet,
    steps: list[int],
    on_device: bool,
    most_names: int,
    time_share: float,
    always_shown: list[str],
) -> tuple[Columns, Columns]: ...
def sequences(
    traces: TraceSet, steps: list[int], operator_name: str, shortest: int, most: int
) -> Columns: ...
def operator_sequences(traces: TraceSet, steps: list[int], prefix: str) -> Columns: ...
def roofline(
    traces: TraceSet, steps: list[int], peak_tflops: float | None, peak_gbps: float | None
) -> Columns: ...
def operators(traces: TraceSet, steps: list[int], by_input_shapes: bool, stack_frames: int) -> Columns: ...
def step_points(traces: TraceSet, fp_point: str, bp_point: str) -> tuple[Columns, Columns]: ...
def device_idle(traces: TraceSet, waits: list[tuple[int, int]] | None) -> tuple[Columns, Columns]: ...
def critical_path(
    traces: TraceSet,
    steps: list[int],
    annotation: str,
    instances: tuple[int, int] | None,
    data_load_events: list[str],
    zero_weight_launch_edges: bool = False,
    until_ns: int | None = None,
    lock_calls: list[str] = ...,
    blocking_calls: list[str] = ...,
) -> CriticalPath: ...
def trace_steps(traces: TraceSet) -> Columns: ...
def step_time(traces: TraceSet) -> Columns: ...
def declared_tables() -> list[tuple[str, list[tuple[str, str, str, str, bool]]]]:
    """The tables of device traces by name; of each column name, type, unit, how to read it, and whether it is
    there on request only. As declared in analysis/device/declared_tables.h.
    """

def step_breakdown(traces: TraceSet) -> tuple[Columns, Columns, Columns]: ...
def collectives(traces: TraceSet, steps: list[int]) -> Columns: ...
def stragglers(traces: TraceSet, steps: list[int], candidates: int) -> Columns: ...
def diff(
    control: TraceSet,
    test: TraceSet,
    control_steps: list[int],
    test_steps: list[int],
    side: str,
    short_names: bool,
) -> Columns: ...
