"""The supported loaders. To add one: a file here, and its adapter in the list below."""

from __future__ import annotations

from headrace.adapters._mistakes import refuse_mistakes
from headrace.adapters.base import Adapter, Attachment
from headrace.adapters.dali import DaliAdapter
from headrace.adapters.function import FunctionAdapter
from headrace.adapters.grain import GrainAdapter
from headrace.adapters.huggingface import DatasetsAdapter
from headrace.adapters.iterable import IterableAdapter, PoolResultsAdapter
from headrace.adapters.mindspore import MindSporeAdapter
from headrace.adapters.mosaicml import StreamingAdapter
from headrace.adapters.pipeline import PipelineAdapter
from headrace.adapters.queue_consumer import QueueConsumerAdapter
from headrace.adapters.ray_data import RayDataAdapter
from headrace.adapters.spdl import SpdlAdapter
from headrace.adapters.tfdata import TfDataAdapter
from headrace.adapters.torch_dataloader import DataLoaderAdapter
from headrace.adapters.torchdata_nodes import NodesAdapter
from headrace.adapters.webdataset import WebDatasetAdapter
from headrace.errors import UsageError

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
    QueueConsumerAdapter(),
    PoolResultsAdapter(),
    IterableAdapter(),
    FunctionAdapter(),
]


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
