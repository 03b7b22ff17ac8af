"""WebDataset's pipelines, stage by stage, alone and inside a DataLoader.

A pipeline makes its iterators with `DataPipeline.invoke`, one call for each stage. So its list of stages
stays the user's own, and travels to worker processes as it is. Where that method is gone, installing raises,
and pipelines are recorded as a whole.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

from headrace.loaders.kit import every_loop, streams
from headrace.loaders.kit.base import Adapter, Attachment
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
    if getattr(invoke, "headrace", False):
        return

    @functools.wraps(invoke)
    def timed(self: Any, stage: Any, *args: Any, **kwargs: Any) -> Any:
        made = invoke(self, stage, *args, **kwargs)
        chain = streams.chain_of(self)
        if chain is None or not hasattr(made, "__next__") or _is_loader(stage):
            return made
        stages = self.pipeline
        place = next((number for number, each in enumerate(stages) if each is stage), 0)
        name, kind = _name_and_kind(stage, is_first=place == 0)
        return chain.timed(made, len(stages) - 1 - place, name, kind)

    timed.headrace = True  # type: ignore[attr-defined]
    pipeline.invoke = timed


def _is_loader(stage: Any) -> bool:
    loader = getattr(sys.modules.get("torch.utils.data"), "DataLoader", None)
    return isinstance(loader, type) and isinstance(stage, loader)


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


def parameters_of(pipeline: Any) -> list[LoaderParameter]:
    """The parameters that its user set in the stages."""
    found: dict[str, LoaderParameter] = {}

    def add(name: str, value: Any, set_in: str) -> None:
        found.setdefault(name, LoaderParameter(name=name, value=value, set_in=set_in))

    shards = shards_of(pipeline)
    if shards is not None:
        add("shards", shards, "write the samples into more tar files")
    after_reading = False
    for stage in pipeline.pipeline:
        own, _ = _function_of(stage)
        after_reading |= own == "tar_file_expander"
        size = _size_of(stage)
        if size is None:
            continue
        if own in ("_shuffle", "detshuffle"):
            # Before the files are read it is the shards that are shuffled.
            add("shuffle" if after_reading else "shardshuffle", size, "set it in .shuffle() or WebDataset()")
        elif own == "_batched":
            add("batched", size, "set it in .batched()")
    return list(found.values())


STAGES = streams.StreamStages("webdataset.pipeline", install, shards_of, parameters_of)


class WebDatasetAdapter(Adapter):
    """A ``DataPipeline``: ``WebDataset``, ``WebLoader`` and what is made of them."""

    libraries = ("webdataset",)
    classes = ("webdataset.pipeline:DataPipeline",)
    loops = classes

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return streams.StreamAttachment(obj, "webdataset")


record_every_loader = every_loop.add(WebDatasetAdapter(), STAGES)

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"webdataset": "pipeline.py"}
