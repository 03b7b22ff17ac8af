"""A DataLoader as data: its structure and its settings."""

from __future__ import annotations

import json
import sys
import types
from functools import lru_cache
from typing import Any, NamedTuple

from headrace.loaders.kit import streams
from headrace.loaders.torch_dataloader.foreign import foreign_of, parameters_of_subclass, workers_of
from headrace.results.loader_model import (
    LoaderBuffer,
    LoaderDelivery,
    LoaderModel,
    LoaderParameter,
    LoaderStage,
)

#: Frames between a trainer's loop and the loader's iterator: a few of torch's, accelerate's and ours.
_DEEPEST_STACK = 40


def _sharing_strategy() -> str:
    strategy = getattr(sys.modules.get("torch.multiprocessing"), "get_sharing_strategy", None)
    return str(strategy()) if strategy is not None else ""


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
    frame: types.FrameType | None = sys._getframe()
    for _ in range(_DEEPEST_STACK):
        if frame is None:
            break
        if frame.f_globals.get("__name__") == "transformers.trainer":
            return "transformers"
        frame = frame.f_back
    return ""


#: What transformers' Trainer sets in its own arguments.
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
    #: Of another library's loader: its user's parameters, as (torch's name, its name).
    foreign: tuple[tuple[str, str], ...] = ()
    #: Parameters of a library's DataLoader, or of a stream: name, value, default and where its user sets it.
    of_stream: tuple[tuple[str, Any, Any, str], ...] = ()


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def settings_of(loader: Any) -> Settings:
    foreign = foreign_of(getattr(loader, "dataset", None))
    if foreign is not None:
        offered = foreign.parameters(loader.dataset)
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
        stream=_is_iterable(loader),
        collates=bool(getattr(loader, "_auto_collation", True)),
        sharing_strategy=_sharing_strategy() if workers > 0 else "",
        start_method=_start_method(loader) if workers > 0 else "",
        trainer=_trainer(),
        num_shards=streams.shards_of(getattr(loader, "dataset", None)),
        keras_workers=workers_of(getattr(loader, "dataset", None)),
        splits_itself=streams.splits_itself(getattr(loader, "dataset", None)),
        of_stream=parameters_of_subclass(loader)
        + tuple(
            (each.name, each.value, each.usual, each.set_in)
            for each in streams.parameters_of(getattr(loader, "dataset", None))
        ),
    )


def model_of(settings: Settings) -> LoaderModel:
    """Workers make whole batches, assigned in turn, in a window of prefetch_factor batches for each."""
    runs_in = "process" if settings.num_workers > 0 else "loop"

    def parameter(name: str, sets: str = "none", usual: Any = None, **others: Any) -> LoaderParameter:
        set_in = ""
        if settings.trainer == "transformers" and name in _OF_TRAINER:
            set_in = f"set dataloader_{name} in TrainingArguments"
        value = getattr(settings, name)
        return LoaderParameter(
            name=name, value=None if value == "" else value, usual=usual, sets=sets, set_in=set_in, **others
        )

    parameters = [
        parameter("num_workers", "workers", min=0, max=settings.num_shards),
        parameter("prefetch_factor", "window", min=1, needs_workers=True),
        parameter("batch_size"),
        parameter("in_order", "order", True, needs_workers=True),
        parameter("persistent_workers", "keeps_workers", False, needs_workers=True),
        parameter("pin_memory", "pins", False),
        parameter(
            "sharing_strategy",
            "passes_by_name",
            "file_descriptor",
            choices=["file_descriptor", "file_system"],
        ),
        parameter("start_method", usual="fork"),
        LoaderParameter(name="dataset_kind", value="iterable" if settings.stream else "map", usual="map"),
        parameter("collates", usual=True),
        parameter("num_shards"),
        # Not a parameter: the framework whose parameters set the others.
        parameter("trainer", usual=settings.trainer),
    ]
    if settings.keras_workers is not None:
        parameters = [_workers_of_keras(settings.keras_workers)]
    if settings.foreign:
        shown = dict(settings.foreign)
        parameters = [one for one in parameters if one.name in shown]
        for one in parameters:
            one.name = shown[one.name]
    known = {one.name for one in parameters}
    parameters += [
        # The loader and its stream may both have a batch size.
        LoaderParameter(
            name=f"dataset.{name}" if name in known else name, value=value, usual=usual, set_in=where
        )
        for name, value, usual, where in settings.of_stream
        if name != "num_shards"
    ]
    model = LoaderModel(
        framework="torch",
        stages=[
            LoaderStage(name="sampler"),
            LoaderStage(
                name="workers",
                workers=settings.num_workers,
                runs_in=runs_in,
                gets_work="own_shard" if settings.stream else "in_turn",
                ordered=settings.in_order,
                widened_by=parameters[0].name,
            ),
            LoaderStage(name="handoff"),
            LoaderStage(name="pin_memory", runs_in="thread"),
        ],
        buffers=[
            LoaderBuffer(
                from_=_MAKES,
                capacity=settings.prefetch_factor or 0,
                is_window=True,
                per_worker=True,
                set_by="" if settings.foreign else "prefetch_factor",
            )
        ],
        delivery=LoaderDelivery(ordered=settings.in_order, draws=_DRAWS, hands_over=_HANDS_OVER, pins=_PINS),
        parameters=[one for one in parameters if one.value is not None or one.name == "prefetch_factor"],
        rows_advice=""
        if settings.stream or not settings.collates or settings.batch_size is None
        else _ROWS_ADVICE.format(settings.batch_size),
        shard_advice=""
        if settings.splits_itself or settings.keras_workers is not None
        else _SHARD_ADVICE
        if settings.num_shards is None
        else streams.SHARD_ADVICE,
    )
    if settings.keras_workers is not None:
        # Its threads fill a queue and hand nothing over between processes.
        model.buffers = [LoaderBuffer(from_=_MAKES, capacity=_KERAS_QUEUE)]
        model.delivery = LoaderDelivery()
    return model


def _workers_of_keras(workers: int) -> LoaderParameter:
    where = "set workers of the PyDataset: its 0 and 1 load in the loop, more are threads of its own"
    number = max(1, workers)
    sets = "workers" if number == 1 else "none"
    return LoaderParameter(name="workers", value=number, min=2, sets=sets, stage=_MAKES, set_in=where)


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


def _is_iterable(loader: Any) -> bool:
    dataset_class = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", None)
    return dataset_class is not None and isinstance(getattr(loader, "dataset", None), dataset_class)
