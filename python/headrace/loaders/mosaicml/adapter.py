"""Detects a StreamingDataset, and records loops over it."""

from __future__ import annotations

import weakref
from typing import Any

from headrace import _core
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.loaders.mosaicml.stages import Ahead, follow, install, parameters_of
from headrace.record.operator import readable
from headrace.results.loader_model import LoaderBuffer, LoaderModel, LoaderParameter, LoaderStage

_DOWNLOADS, _LOOP = 0, 1
_WITH_WORKERS = "iterate over it with torch.utils.data.DataLoader"


class StreamingAdapter(Adapter):
    """A ``StreamingDataset`` in the training loop; one in a DataLoader is recorded with that."""

    libraries = ("streaming",)

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of("streaming.base.dataset", "StreamingDataset")) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return StreamingAttachment(obj)


class _Samples:
    """The dataset; making each sample is one call of its operator."""

    def __init__(self, dataset: Any, attachment: StreamingAttachment) -> None:
        self._dataset = dataset
        self._attachment = attachment

    def __iter__(self) -> Any:
        return self._attachment.around(iter(self._dataset))


class StreamingAttachment(Attachment):
    """A dataset in the training loop: a thread downloads ahead, the loop decodes."""

    def __init__(self, obj: Any) -> None:
        super().__init__(_Samples(obj, self), ready=lambda: False)
        self._dataset = weakref.ref(obj)
        self._decodes: _core.OperatorHandle | None = None
        self._ahead: Ahead | None = None
        self._model: LoaderModel | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        dataset: Any = self._dataset()
        install()
        shown = int(dataset.predownload)

        def operator(name: str, kind: str, stage: int) -> _core.OperatorHandle:
            place = stage * _core.PLACES_PER_STAGE
            made = _core.OperatorHandle(readable(name), kind, loader=handle.id, stage=place)
            handle.add_operator(made)
            return made

        downloads = operator("download", "source", _DOWNLOADS)
        decodes = operator(type(dataset).__name__, "map", _LOOP)
        level = _core.QueueHandle("predownload", shown, handle.id, _DOWNLOADS, _LOOP)
        self._ahead = Ahead(downloads, level)
        follow(dataset, self._ahead)
        self._decodes = decodes
        self._model = _model_of(dataset, shown)

    def around(self, iterator: Any) -> Any:
        return iterator if self._decodes is None else _core.OperatorIterator(iterator, self._decodes)

    def describe(self) -> LoaderModel | None:
        return self._model


def _model_of(dataset: Any, ahead: int) -> LoaderModel:
    parameters = parameters_of(dataset)
    for each in parameters:
        if each.name == "predownload":
            each.sets, each.stage, each.min = "capacity", _DOWNLOADS, 1
    workers = LoaderParameter(name="num_workers", value=0, usual=0, min=0, sets="workers", stage=_LOOP)
    workers.set_in = _WITH_WORKERS
    return LoaderModel(
        framework="streaming",
        stages=[
            LoaderStage(name="download", runs_in="thread"),
            LoaderStage(name=type(dataset).__name__, workers=0, runs_in="loop", widened_by="num_workers"),
        ],
        buffers=[LoaderBuffer(from_=_DOWNLOADS, to=_LOOP, capacity=ahead, set_by="predownload")],
        parameters=[workers, *parameters],
    )
