"""A DataLoader as data: its structure and its settings."""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.loaders.kit import streams
from headrace.loaders.kit.base import classes_of
from headrace.loaders.kit.graph import Graph
from headrace.loaders.kit.names import callers
from headrace.loaders.torch_dataloader.operators import foreign_of, parameters_of_subclass, workers_of
from headrace.results.loader_model import LoaderDelivery, LoaderModel, LoaderParameter

#: Frames between a trainer's loop and the loader's iterator: a few of torch's, accelerate's and ours.
_DEEPEST_STACK = 40


def _sharing_strategy() -> str:
    strategy = getattr(sys.modules.get("torch.multiprocessing"), "get_sharing_strategy", str)
    return str(strategy())


def _start_method(loader: Any) -> str:
    context = getattr(loader, "multiprocessing_context", None)
    if context is None:
        context = sys.modules.get("torch.multiprocessing")
    method = getattr(context, "get_start_method", None)
    # The public call would fix the default for the whole process.
    return str((method(allow_none=True) if method is not None else None) or "fork")


def _trainer() -> str:
    """The framework whose training loop iterates over the loader, and whose parameters configure it."""
    if "transformers.trainer" not in sys.modules:
        return ""
    frames = callers(sys._getframe(), _DEEPEST_STACK)
    is_its_loop = any(each.f_globals.get("__name__") == "transformers.trainer" for each in frames)
    return "transformers" if is_its_loop else ""


#: Parameters that transformers' Trainer sets by its own arguments.
_OF_TRAINER = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")
_SHARD_ADVICE = (
    "the dataset is a stream and must give each worker its own part (get_worker_info()), "
    "or every worker reads all of it"
)
_ROWS_ADVICE = (
    "index with all of them in __getitems__(indices) of the dataset and pass its result on in collate_fn, or "
    "DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), {}, drop_last=False))"
)
#: The default of ``max_queue_size``: batches that workers of a PyDataset make ahead.
_KERAS_QUEUE = 10
#: Stages of a DataLoader; `_core.STAGE_...` are places in them.
_DRAWS, _MAKES, _HANDS_OVER, _PINS = range(4)


class Settings(NamedTuple):
    """The settings of a DataLoader; strings if its user writes strings."""

    num_workers: int = 0
    prefetch_factor: int | None = None
    batch_size: int | None = None
    in_order: bool = True
    persistent_workers: bool = False
    pin_memory: bool = False
    stream: bool = False
    collates: bool = True
    sharing_strategy: str = ""
    start_method: str = ""
    trainer: str = ""
    #: Shards of a stream that gives each worker its own; None: unknown.
    num_shards: int | None = None
    splits_itself: bool = False
    #: Workers of Keras' PyDataset, then the user's only parameter.
    keras_workers: int | None = None
    #: The user's parameters of another library's loader, as (torch's name, its name).
    foreign: tuple[tuple[str, str], ...] = ()
    #: Parameters of a library's DataLoader, or of a stream: name, value, default and where its user sets it.
    of_stream: tuple[tuple[str, Any, Any, str], ...] = ()


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def settings_of(loader: Any) -> Settings:
    dataset = getattr(loader, "dataset", None)
    foreign = foreign_of(dataset)
    if foreign is not None:
        offered = foreign.parameters(dataset)
        values = {name: value for name, (_, value) in offered.items()}
        names = tuple((name, shown) for name, (shown, _) in offered.items() if shown)
        return Settings(**values, stream=True, splits_itself=True, collates=False, foreign=names)
    workers = _whole(getattr(loader, "num_workers", 0)) or 0
    return Settings(
        num_workers=workers,
        prefetch_factor=_whole(getattr(loader, "prefetch_factor", None)),
        batch_size=_whole(getattr(loader, "batch_size", None)),
        in_order=bool(getattr(loader, "in_order", True)),
        persistent_workers=bool(getattr(loader, "persistent_workers", False)),
        pin_memory=bool(getattr(loader, "pin_memory", False)),
        stream=isinstance(dataset, classes_of("torch.utils.data", "IterableDataset")),
        collates=bool(getattr(loader, "_auto_collation", True)),
        sharing_strategy=_sharing_strategy() if workers > 0 else "",
        start_method=_start_method(loader) if workers > 0 else "",
        trainer=_trainer(),
        num_shards=streams.shards_of(dataset),
        keras_workers=workers_of(dataset),
        splits_itself=streams.splits_itself(dataset),
        of_stream=parameters_of_subclass(loader)
        + tuple((each.name, each.value, each.usual, each.set_in) for each in streams.parameters_of(dataset)),
    )


def model_of(settings: Settings) -> LoaderModel:
    """Workers make whole batches, assigned in turn, in a window of prefetch_factor batches for each."""
    graph, is_keras = Graph(), settings.keras_workers is not None
    if is_keras:
        where = "set workers of the PyDataset: its 0 and 1 load in the loop, more are threads of its own"
        number = max(1, settings.keras_workers or 0)
        sets = "workers" if number == 1 else "none"
        graph.parameter("workers", value=number, min=2, sets=sets, stage=_MAKES, set_in=where)
    else:
        _add_parameters(graph, settings)
    if settings.foreign:
        shown = dict(settings.foreign)
        graph.parameters = [one for one in graph.parameters if one.name in shown]
        for one in graph.parameters:
            one.name = shown[one.name]
    known = {one.name for one in graph.parameters}
    for name, value, usual, where in settings.of_stream:
        if name != "num_shards":
            # The loader and its stream may both have a batch size.
            own = f"dataset.{name}" if name in known else name
            graph.parameters.append(LoaderParameter(name=own, value=value, usual=usual, set_in=where))
    graph.stage("sampler", 1, "loop")
    makes = graph.stage("workers", settings.num_workers, "process" if settings.num_workers > 0 else "loop")
    makes.gets_work = "own_shard" if settings.stream else "in_turn"
    makes.ordered, makes.widened_by = settings.in_order, graph.parameters[0].name
    graph.stage("handoff", 1, "loop")
    graph.stage("pin_memory", 1, "thread")
    graph.parameters = [
        one for one in graph.parameters if one.value is not None or one.name == "prefetch_factor"
    ]
    if is_keras:
        # Its threads fill a queue and hand nothing over between processes.
        graph.buffer(_MAKES, -1, _KERAS_QUEUE)
        model = graph.model("torch")
        model.delivery = LoaderDelivery()
    else:
        set_by = "" if settings.foreign else "prefetch_factor"
        window = settings.prefetch_factor or 0
        graph.buffer(_MAKES, -1, window, set_by, is_window=True, per_worker=True)
        model = graph.model("torch")
        model.delivery = LoaderDelivery(settings.in_order, _DRAWS, _HANDS_OVER, _PINS)
    if not settings.stream and settings.collates and settings.batch_size is not None:
        model.rows_advice = _ROWS_ADVICE.format(settings.batch_size)
    if not settings.splits_itself and not is_keras:
        model.shard_advice = _SHARD_ADVICE if settings.num_shards is None else streams.SHARD_ADVICE
    return model


def _add_parameters(graph: Graph, settings: Settings) -> None:
    def add(name: str, sets: str = "none", usual: Any = None, **fields: Any) -> None:
        value = getattr(settings, name)
        if settings.trainer == "transformers" and name in _OF_TRAINER:
            fields["set_in"] = f"set dataloader_{name} in TrainingArguments"
        graph.parameter(name, value=None if value == "" else value, usual=usual, sets=sets, **fields)

    add("num_workers", "workers", min=0, max=settings.num_shards)
    add("prefetch_factor", "window", min=1, needs_workers=True)
    add("batch_size")
    add("in_order", "order", True, needs_workers=True)
    add("persistent_workers", "keeps_workers", False, needs_workers=True)
    add("pin_memory", "pins", False)
    strategies = ["file_descriptor", "file_system"]
    add("sharing_strategy", "passes_by_name", strategies[0], choices=strategies)
    add("start_method", usual="fork")
    graph.parameter("dataset_kind", value="iterable" if settings.stream else "map", usual="map")
    add("collates", usual=True)
    add("num_shards")
    # Not a parameter: the framework whose parameters set the others.
    add("trainer", usual=settings.trainer)


def add_loop(model: LoaderModel, settings: Settings) -> None:
    """A DataLoader without workers behind ``model``, whose stages run elsewhere and feed its dataset.

    Its workers would not share those stages, so it has no parameter that is advised.
    """
    own = model_of(settings)
    loop = own.stages[_MAKES]
    loop.gets_work, loop.widened_by = "shared_queue", ""
    for buffer in model.buffers:
        if buffer.to < 0:
            buffer.to = len(model.stages) + _MAKES
    model.framework = own.framework
    model.stages += own.stages[: _MAKES + 1]
    known = {one.name for one in own.parameters}
    for one in model.parameters:
        if one.name in known:
            one.name = f"dataset.{one.name}"
    for one in own.parameters:
        one.sets = "none"
    model.parameters += own.parameters


@lru_cache(maxsize=32)
def model_json(settings: Settings) -> str:
    """The model in the format of the recording."""
    from headrace.results.data import as_json

    return json.dumps(as_json(model_of(settings)))
