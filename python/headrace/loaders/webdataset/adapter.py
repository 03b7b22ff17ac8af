"""Detects a pipeline of WebDataset's, and records loops over it."""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.loaders.kit import streams
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.loaders.webdataset.stages import parameters_of, shards_of
from headrace.results.loader_model import LoaderModel


class WebDatasetAdapter(Adapter):
    """A ``DataPipeline``: ``WebDataset``, ``WebLoader`` and what is made of them."""

    libraries = ("webdataset",)

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of("webdataset.pipeline", "DataPipeline")) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return PipelineAttachment(obj)


class PipelineAttachment(Attachment):
    """A pipeline in the training loop: each stage is timed."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj)
        self._model: LoaderModel | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        pipeline: Any = self.iterable
        streams.record(pipeline, handle.id)
        self._model = streams.model_in_loop("webdataset", parameters_of(pipeline), shards_of(pipeline))

    def describe(self) -> LoaderModel | None:
        return self._model
