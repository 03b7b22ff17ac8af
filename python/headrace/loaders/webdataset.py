"""WebDataset's pipelines, stage by stage, alone and inside a DataLoader.

A pipeline makes its iterators with `DataPipeline.invoke`, one call for each stage. So its list of stages
stays the user's own, and travels to worker processes as it is. Where that method is gone, installing raises,
and pipelines are recorded as a whole.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from headrace import _core
from headrace.loaders.kit import every_loop, streams
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.record.operator import name_of
from headrace.results.loader_model import LoaderParameter

#: webdataset's names of stages with an operator's kind of their own; all others are maps.
_KINDS = {
    "_batched": "batch",
    "_shuffle": "shuffle",
    "detshuffle": "shuffle",
    "_select": "filter",
    "_rsample": "filter",
}
#: They call a function of the user's, their first argument.
_CALL_A_FUNCTION = ("_map", "_select")


def install() -> None:
    """Every stage asks from now on whether it is recorded. Raises LookupError for another version."""
    pipeline: Any = getattr(sys.modules["webdataset.pipeline"], "DataPipeline", None)
    invoke = getattr(pipeline, "invoke", None)
    if invoke is None:
        raise LookupError("DataPipeline has no invoke")
    if isinstance(invoke, _core.HookedCall):
        return

    def timed(made: Any, self: Any, stage: Any, *_: Any) -> Any:
        chain = streams.chain_of(self)
        is_loader = isinstance(stage, classes_of("torch.utils.data", "DataLoader"))
        if chain is None or not hasattr(made, "__next__") or is_loader:
            return None
        stages = self.pipeline
        place = next((number for number, each in enumerate(stages) if each is stage), 0)
        return chain.timed(made, len(stages) - 1 - place, *_name_and_kind(stage, is_first=place == 0))

    pipeline.invoke = _core.HookedCall(invoke, None, timed)


def _function_of(stage: Any) -> tuple[str, Any]:
    """webdataset's name of the stage, and the user's function in it (None: there is none)."""
    function = getattr(stage, "f", None)
    if type(stage).__name__ != "FilterFunction" or function is None:
        return name_of(stage), None
    name = name_of(function)
    given = (*stage.args, *stage.kw.values())
    return name, given[0] if name in _CALL_A_FUNCTION and given and callable(given[0]) else None


def _name_and_kind(stage: Any, is_first: bool) -> tuple[str, str]:
    own, function = _function_of(stage)
    kind = "source" if is_first else _KINDS.get(own, "map")
    if function is not None:
        is_decoder = type(function).__name__ == "Decoder" and _is_webdatasets(type(function))
        return "decode" if is_decoder else name_of(function), kind
    given = (*getattr(stage, "args", ()), *getattr(stage, "kw", {}).values())
    collate = next((each for each in given if inspect.isfunction(each)), None)
    if own == "_batched" and collate is not None and not _is_webdatasets(collate):
        return name_of(collate), kind
    size = _size_of(stage)
    shown = own.removeprefix("_")
    return f"{shown}({size})" if size is not None and kind in ("batch", "shuffle") else shown, kind


def _is_webdatasets(function: Any) -> bool:
    return str(function.__module__).partition(".")[0] == "webdataset"


def _size_of(stage: Any) -> int | None:
    size = stage.args[0] if getattr(stage, "args", ()) else getattr(stage, "bufsize", None)
    for name in ("batchsize", "bufsize"):
        size = getattr(stage, "kw", {}).get(name, size)
    return size if isinstance(size, int) and not isinstance(size, bool) else None


def shards_of(pipeline: Any) -> int | None:
    """How many shards there are; None: unknown, or drawn again and again."""
    first = next(iter(pipeline.pipeline), None)
    urls = getattr(first, "urls", None)
    draws_again = "Resampled" in type(first).__name__
    return len(urls) if isinstance(urls, (list, tuple)) and urls and not draws_again else None


def parameters_of(pipeline: Any) -> Iterator[LoaderParameter]:
    """The parameters that its user set in the stages."""
    shards = shards_of(pipeline)
    if shards is not None:
        yield LoaderParameter(name="shards", value=shards, set_in="write the samples into more tar files")
    after_reading = False
    for stage in pipeline.pipeline:
        own, _ = _function_of(stage)
        after_reading |= own == "tar_file_expander"
        size = _size_of(stage)
        if size is not None and own in ("_shuffle", "detshuffle"):
            # Before the files are read it is the shards that are shuffled.
            name, where = (
                "shuffle" if after_reading else "shardshuffle",
                "set it in .shuffle() or WebDataset()",
            )
            yield LoaderParameter(name=name, value=size, set_in=where)
        elif size is not None and own == "_batched":
            yield LoaderParameter(name="batched", value=size, set_in="set it in .batched()")


STAGES = streams.StreamStages("webdataset.pipeline", install, shards_of, parameters_of)


class WebDatasetAdapter(Adapter):
    """A ``DataPipeline``: ``WebDataset``, ``WebLoader`` and what is made of them."""

    libraries = ("webdataset",)
    classes = ("webdataset.pipeline:DataPipeline",)
    loops = classes

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return streams.StreamAttachment(obj, "webdataset")


record_every_loader = every_loop.add(WebDatasetAdapter(), STAGES)

RECORDED_AFTER = {"webdataset": "pipeline.py"}
