"""Ray Data: the operators of a streaming execution, from its own counters.

`callback` is called by Ray as the execution goes on, and turns the counters of an operator into blocks, times
and levels. A loop over batches in the dataset of a DataLoader without workers is stages of that loader.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.loaders.kit import every_loop, libraries, streams
from headrace.loaders.kit.base import Adapter, Attachment, describe
from headrace.loaders.kit.graph import Graph
from headrace.loaders.kit.names import is_the_users
from headrace.loaders.ray_data import callback
from headrace.loaders.ray_data.callback import Progress, require_function_time
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
        if callback.RecordingCallback not in classes:
            context.custom_execution_callback_classes = callback.CallbackClasses(
                [*classes, callback.RecordingCallback]
            )
        callback.starting[:] = [self]

    def begin_inside(self) -> None:
        """The loop of the DataLoader around it takes these batches."""
        assert self._around is not None
        try:
            self.begin(self._around.handle)
        except Exception as error:  # the loop must still run
            let_through(error)
            self._unavailable(error)

    def started(self, executor: Any) -> None:
        """Ray is about to run these operators."""
        try:
            self._read(executor)
        except Exception as error:
            let_through(error)
            self._unavailable(error)

    def _read(self, executor: Any) -> None:
        assert self._handle is not None
        loader = self._handle.id
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
            operator = _core.OperatorHandle(
                self._names[index], kind, loader=loader, stage=index * _core.PLACES_PER_STAGE
            )
            self._handle.add_operator(operator)
            self._progress.append(Progress(each.metrics, operator))
        known = _queues.setdefault(self._handle, {})
        for buffer in self._model().buffers:
            ends = buffer.from_, buffer.to
            if ends not in known:
                name = f"{self._names[buffer.from_]} blocks"
                known[ends] = _core.QueueHandle(name, 0, loader, *ends)
            self._queues.append(known[ends])
        self._describe_again()

    def went_on(self) -> None:
        """Some time of the execution passed."""
        try:
            for progress in self._progress:
                progress.count_tasks()
            now_s = _core.now_s()
            if now_s >= self._next_s:
                self._next_s = now_s + _PERIOD_S
                self._update()
        except Exception as error:
            let_through(error)
            self._progress = []
            self._unavailable(error)

    def _update(self) -> None:
        for progress in self._progress:
            progress.update()
        at_ns = _core.now_ns()
        for index, queue in enumerate(self._queues):
            level = self._progress[index].finished_blocks()
            if index + 1 < len(self._progress):
                level += self._progress[index + 1].waiting_blocks()
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

    def _unavailable(self, error: Exception) -> None:
        if self._handle is not None:
            self._handle.miss(_core.NO_ITERATOR_DETAIL)
        version = getattr(sys.modules.get("ray"), "__version__", "")
        warn_once(f"operator detail unavailable: ray {version} is not as its adapter expects ({error!r})")


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
    iterate = kind.__iter__
    if getattr(iterate, "looks_around", False):
        return

    @functools.wraps(iterate)
    def recorded(self: Any) -> Any:
        around = _around(sys._getframe(1)) if enabled() else None
        if around is None:
            return iterate(self)
        RayAttachment(self, around).begin_inside()
        return streams.waiting(iterate(self))

    recorded.looks_around = True  # type: ignore[attr-defined]
    kind.__iter__ = recorded


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

    libraries = ("ray.data",)
    classes = ("ray.data.iterator:_IterableFromIterator",)

    def name(self, obj: Any) -> str:
        return "Ray Data"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return RayAttachment(obj)


libraries.adapters.append(RayDataAdapter())
libraries.streams.append(STAGES)

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"ray.data.iterator": ""}


def record_every_loader() -> None:
    """Record every loop over the batches of a dataset (``headrace run``)."""
    install()
    kind = sys.modules["ray.data.iterator"]._IterableFromIterator
    every_loop.patch(kind, RayDataAdapter(), feeds=is_part)
