"""Ray Data: the operators of a streaming execution, from its own counters.

Ray calls a callback as the execution goes on, in the driver alone. It turns the counters of an operator into
blocks, times and levels. A loop over batches in the dataset of a DataLoader without workers is stages of that
loader.
"""

from __future__ import annotations

import re
import sys
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.loaders.kit import every_loop, libraries, streams
from headrace.loaders.kit.base import Adapter, Attachment, describe, record_detail
from headrace.loaders.kit.graph import Graph
from headrace.loaders.kit.names import is_the_users
from headrace.record.operator import readable
from headrace.record.session import enabled
from headrace.results.loader_model import LoaderModel

if TYPE_CHECKING:
    from headrace.loaders.torch_dataloader.hook import Around


#: A batch that is there takes less; Ray does not tell whether it was.
_READY_S = 0.002
#: Between two looks at the counters.
_PERIOD_S = 0.05
#: Queues of each loader by their ends: an execution that goes on while the next epoch begins shares them.
_queues: weakref.WeakKeyDictionary[_core.LoaderHandle, dict[tuple[int, int], _core.QueueHandle]] = (
    weakref.WeakKeyDictionary()
)


class RayAttachment(Attachment):
    """One loop over batches; each iteration of it is an execution."""

    def __init__(self, obj: Any, around: Around | None = None) -> None:
        """around: the DataLoader that the batches feed."""
        super().__init__(obj, ready=self._was_ready)
        self._around = around
        self._asked_s: float | None = None
        self._handle: _core.LoaderHandle | None = None
        self._progress: list[Progress] = []
        self._queues: list[_core.QueueHandle] = []
        self._names: list[str] = []
        self._settings: list[dict[str, int]] = []
        self._methods: list[str] = []
        self._described: list[int] = []
        self._next_s = 0.0
        self._variables = _variables_of(obj)

    def _was_ready(self) -> bool | None:
        if self._asked_s is None:
            self._asked_s = _core.now_s()
            return None
        ready = _core.now_s() - self._asked_s < _READY_S
        self._asked_s = None
        return ready

    def begin(self, handle: _core.LoaderHandle) -> None:
        self._handle = handle
        self._asked_s = None
        iterator = next((one for one in self._variables.values() if hasattr(one, "get_context")), None)
        if iterator is None:
            raise AttributeError("iter_batches returns another kind of object")
        context = iterator.get_context()
        classes = context.custom_execution_callback_classes
        if RecordingCallback not in classes:
            context.custom_execution_callback_classes = CallbackClasses([*classes, RecordingCallback])
        starting[:] = [self]

    def begin_inside(self) -> None:
        """The loop of the DataLoader around it takes these batches."""
        assert self._around is not None
        record_detail(self._around.handle, _library(), self.begin)

    def started(self, executor: Any) -> None:
        """Ray is about to run these operators."""
        assert self._handle is not None
        record_detail(self._handle, _library(), lambda handle: self._read(executor, handle))

    def _read(self, executor: Any, handle: _core.LoaderHandle) -> None:
        operators = [each for each in executor._topology if type(each).__name__ != "InputDataBuffer"]
        for each in operators:
            require_function_time(each.metrics)
        names = [readable(_short(each.name)) for each in operators]
        if self._around is not None:
            self._around.put_in_front(tuple(names))
        self._names = names
        self._settings = [_settings_of(each) for each in operators]
        self._methods = [_method_of(each.name) for each in operators]
        self._progress, self._queues = [], []
        self._described = [0] * len(operators)
        for index, each in enumerate(operators):
            kind = "source" if index == 0 else "map"
            at = index * _core.PLACES_PER_STAGE
            operator = _core.OperatorHandle(names[index], kind, loader=handle.id, stage=at)
            handle.add_operator(operator)
            self._progress.append(Progress(each.metrics, operator))
        known = _queues.setdefault(handle, {})
        for buffer in self._model().buffers:
            ends = buffer.from_, buffer.to
            if ends not in known:
                name = f"{self._names[buffer.from_]} blocks"
                known[ends] = _core.QueueHandle(name, 0, handle.id, *ends)
            self._queues.append(known[ends])
        self._describe_again()

    def went_on(self) -> None:
        """Some time of the execution passed."""
        assert self._handle is not None
        record_detail(self._handle, _library(), lambda _: self._count())

    def _count(self) -> None:
        progress, self._progress = self._progress, []  # nothing more after a failure
        for each in progress:
            each.count_tasks()
        self._progress = progress
        now_s = _core.now_s()
        if now_s >= self._next_s:
            self._next_s = now_s + _PERIOD_S
            self._update()

    def _update(self) -> None:
        for progress in self._progress:
            progress.update()
        at_ns = _core.now_ns()
        for index, queue in enumerate(self._queues):
            # Blocks of this operator that wait for the next one, or for the loop.
            level = int(self._progress[index].metrics.num_external_outqueue_blocks)
            if index + 1 < len(self._progress):
                level += int(self._progress[index + 1].metrics.num_external_inqueue_blocks)
            queue.sampled(level, at_ns)
        if [progress.tasks for progress in self._progress] != self._described:
            self._describe_again()

    def _describe_again(self) -> None:
        self._described = [progress.tasks for progress in self._progress]
        model = self.describe()
        if model is not None and self._handle is not None:
            describe(self._handle, model)

    def describe(self) -> LoaderModel | None:
        return self._model() if self._names else None

    def _model(self) -> LoaderModel:
        graph = Graph()
        for name, tasks in zip(self._names, self._described, strict=True):
            graph.stage(name, max(1, tasks), "process", ordered=False)
        last = len(graph.stages) - 1
        for at in range(len(graph.stages)):
            graph.buffer(at, at + 1 if at < last else -1, 0)
        for name, usual in (("batch_size", 256), ("prefetch_batches", 1)):
            if isinstance(value := self._variables.get(name), int):
                graph.parameter(name, value=value, usual=usual, set_in="pass it to iter_batches")
        for index, (stage, settings) in enumerate(zip(graph.stages, self._settings, strict=True)):
            for setting, value in settings.items():
                widens = setting in ("compute", "concurrency")
                where = _place_of(setting, self._methods[index])
                own: dict[str, Any] = {"value": value, "min": 1, "stage": index, "set_in": where}
                name = graph.parameter(f"{stage.name}.{setting}", sets="workers" if widens else "none", **own)
                stage.widened_by = name if widens else stage.widened_by
        model = graph.model("ray data")
        model.delivery.ordered = True
        if self._around is not None:
            self._around.add_loop(model)
        return model


#: The loop that begins now: the next execution that starts belongs to it.
starting: list[RayAttachment] = []


class RecordingCallback:
    """An ``ExecutionCallback``."""

    def __init__(self) -> None:
        self._execution: RayAttachment | None = None

    def before_execution_starts(self, executor: Any) -> None:
        """Called by Ray."""
        if starting:
            self._execution = starting.pop()
            self._execution.started(executor)

    def on_execution_step(self, executor: Any) -> None:
        """Called by Ray, in the thread of the execution."""
        if self._execution is not None:
            self._execution.went_on()

    def after_execution_succeeds(self, executor: Any) -> None:
        """Called by Ray."""
        self.on_execution_step(executor)

    def after_execution_fails(self, executor: Any, error: Exception) -> None:
        """Called by Ray."""
        self.on_execution_step(executor)


class CallbackClasses(list[Any]):
    """Classes of callbacks in a dataset's context. Workers, which may not have Headrace, get the others."""

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([one for one in self if one is not RecordingCallback],)

    def __deepcopy__(self, memo: dict[int, Any]) -> CallbackClasses:
        return CallbackClasses(self)

    def __copy__(self) -> CallbackClasses:
        return CallbackClasses(self)


#: Calls of one moment that are recorded one by one; more are fewer, longer ones.
_MAX_CALLS = 16
#: Fields of the time of user's functions; the first one with a value counts. Newer versions' are first.
_BUSY = ("function_body_time_s", "block_transform_time_s", "block_generation_time")


def require_function_time(metrics: Any) -> None:
    """Raises AttributeError where Ray counts only the making of blocks, without the user's functions."""
    if not any(hasattr(metrics, name) for name in _BUSY[:-1]):
        raise AttributeError(_BUSY[0])


class Progress:
    """Passes on an operator's blocks and their times. Used by the thread of the execution."""

    def __init__(self, metrics: Any, operator: _core.OperatorHandle) -> None:
        self.metrics = metrics
        self._calls = _core.OverlappingCalls(operator)
        self._blocks = 0
        self._busy_s = 0.0
        #: The most of its tasks that ran at once.
        self.tasks = 0

    def count_tasks(self) -> None:
        """Raises AttributeError if Ray's counters have other names."""
        self.tasks = max(self.tasks, int(self.metrics.num_tasks_running))

    def update(self) -> None:
        """Passes on what is new. Raises AttributeError if Ray's counters have other names."""
        metrics = self.metrics
        blocks = int(metrics.num_task_outputs_generated) - self._blocks
        if blocks <= 0:
            return
        busy_s = self._busy_time() - self._busy_s
        self._blocks += blocks
        self._busy_s += busy_s
        now_ns = _core.now_ns()
        calls = min(blocks, _MAX_CALLS)
        for _ in range(calls):
            self._calls.done(now_ns - int(max(0.0, busy_s) / calls * 1e9), False)

    def _busy_time(self) -> float:
        found = [value for name in _BUSY if (value := getattr(self.metrics, name, None))]
        return float(found[0]) if found else 0.0


def _library() -> str:
    return f"ray {getattr(sys.modules.get('ray'), '__version__', '')}"


def _settings_of(operator: Any) -> dict[str, int]:
    """The limits that the user set: the most tasks, cores for each."""
    found: dict[str, int] = {}
    limit = getattr(operator, "_max_concurrency", None)
    if isinstance(limit, int) and limit > 0:
        found["compute" if _method_of(operator.name) else "concurrency"] = limit
    cores = (getattr(operator, "_ray_remote_args", None) or {}).get("num_cpus")
    if isinstance(cores, int) and cores > 1:
        found["num_cpus"] = cores
    return found


#: Operators of a function, by the methods of a dataset that make them. Since Ray 2.51 these take ``compute``;
#: reads take ``concurrency``.
_METHODS = {"MapBatches": "map_batches", "FlatMap": "flat_map", "Map": "map", "Filter": "filter"}


def _method_of(name: str) -> str:
    """The method behind the last function in an operator's name; "" if it has none."""
    kinds = re.findall(r"\b(MapBatches|FlatMap|Map|Filter)\(", name)
    return _METHODS[kinds[-1]] if kinds else ""


def _place_of(setting: str, method: str) -> str:
    if setting == "compute":
        return f"as compute=ray.data.TaskPoolStrategy(size=...) of {method}"
    return f"pass it to {method or 'the method that makes it'}"


def _short(name: str) -> str:
    """``ReadRange->MapBatches(decode)`` without the parts that are long."""
    return re.sub(r"<locals>\.", "", name)[:60]


def _variables_of(obj: Any) -> dict[str, Any]:
    """The variables of the functions that make its batches."""
    found: dict[str, Any] = {}
    waiting = [getattr(obj, "iterator_gen", None)]
    for _ in range(10):
        if not waiting:
            break
        function = waiting.pop()
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            found.setdefault(name, value)
            if hasattr(value, "iterator_gen"):
                waiting.append(value.iterator_gen)
    return found


def install() -> None:
    """Loops over batches ask from now on whether they feed a DataLoader. Raises AttributeError for another
    version."""
    kind: Any = sys.modules["ray.data.iterator"]._IterableFromIterator
    if kind in _hooked:
        return
    _hooked.add(kind)

    def begins(self: Any) -> None:
        if enabled() and (around := _around(sys._getframe(1))) is not None:
            RayAttachment(self, around).begin_inside()

    def made(batches: Any, _: Any) -> Any:
        return streams.waiting(batches) if enabled() and _around(sys._getframe(1)) is not None else None

    kind.__iter__ = _core.HookedCall(kind.__iter__, begins, made)


_hooked: weakref.WeakSet[type] = weakref.WeakSet()


def is_part(frame: FrameType) -> bool:
    """A loop of another library, or one that feeds a DataLoader."""
    return not is_the_users(frame.f_code.co_filename) or _around(frame) is not None


def _around(frame: FrameType) -> Around | None:
    if "torch.utils.data" not in sys.modules:
        return None
    from headrace.loaders.torch_dataloader.hook import loader_around

    return loader_around(frame)


STAGES = streams.StreamStages("ray.data.iterator", install)


_MODULE = "ray.data.iterator"


class RayDataAdapter(Adapter):
    """Batches of a dataset of Ray Data."""

    shown_as = "Ray Data"
    attachment = RayAttachment
    libraries = ("ray.data",)
    classes = ("ray.data.iterator:_IterableFromIterator",)


libraries.adapters.append(RayDataAdapter())
libraries.streams.append(STAGES)

RECORDED_AFTER = {"ray.data.iterator": ""}


def record_every_loader() -> None:
    """Record every loop over the batches of a dataset (``headrace run``)."""
    install()
    kind = sys.modules["ray.data.iterator"]._IterableFromIterator
    every_loop.patch(kind, RayDataAdapter(), feeds=is_part)
