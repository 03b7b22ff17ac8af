"""The supported loaders. To add one: a file or folder here, and its adapter in the list below."""

from __future__ import annotations

from headrace.errors import UsageError
from headrace.loaders import litdata, monai, torch_geometric  # noqa: F401 - they register themselves
from headrace.loaders.batchgenerators import AugmenterAdapter
from headrace.loaders.dali import DaliAdapter
from headrace.loaders.fastai import FastaiAdapter
from headrace.loaders.function import FunctionAdapter
from headrace.loaders.grain import GrainAdapter
from headrace.loaders.huggingface import DatasetsAdapter
from headrace.loaders.iterable import IterableAdapter, PoolResultsAdapter
from headrace.loaders.kit import every_loop, streams
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.mistakes import refuse_mistakes
from headrace.loaders.mindspore import MindSporeAdapter
from headrace.loaders.mosaicml import StreamingAdapter
from headrace.loaders.pipeline import PipelineAdapter
from headrace.loaders.queue_consumer import QueueConsumerAdapter
from headrace.loaders.ray_data import RayDataAdapter
from headrace.loaders.spdl import SpdlAdapter
from headrace.loaders.tfdata import TfDataAdapter
from headrace.loaders.torch_dataloader import DataLoaderAdapter
from headrace.loaders.torchdata_nodes import NodesAdapter
from headrace.loaders.torchrl import CollectorAdapter, ReplayBufferAdapter
from headrace.loaders.webdataset import WebDatasetAdapter
from headrace.loaders.wrapped_queues import WholeQueueAdapter

ADAPTERS: list[Adapter] = [
    PipelineAdapter(),
    DataLoaderAdapter(),
    SpdlAdapter(),
    MindSporeAdapter(),
    NodesAdapter(),
    DatasetsAdapter(),
    WebDatasetAdapter(),
    DaliAdapter(),
    RayDataAdapter(),
    GrainAdapter(),
    StreamingAdapter(),
    TfDataAdapter(),
    AugmenterAdapter(),
    FastaiAdapter(),
    ReplayBufferAdapter(),
    CollectorAdapter(),
    QueueConsumerAdapter(),
    WholeQueueAdapter(),
    PoolResultsAdapter(),
    IterableAdapter(),
    FunctionAdapter(),
]
every_loop.libraries.extend(library for adapter in ADAPTERS for library in adapter.libraries)
streams.of_libraries.extend(adapter.stages for adapter in ADAPTERS if adapter.stages is not None)


def adapter_for(obj: object) -> Adapter:
    """The adapter that fits best.

    Raises UsageError if ``obj`` can neither be iterated nor called, or is surely no loader.
    """
    refuse_mistakes(obj)
    best = max(ADAPTERS, key=lambda adapter: adapter.detect(obj))
    if best.detect(obj) == 0:
        kind = type(obj).__name__
        raise UsageError(f"wrap needs an iterable, a DataLoader or a function that makes a batch, not {kind}")
    return best


__all__ = ["ADAPTERS", "Adapter", "Attachment", "adapter_for"]
