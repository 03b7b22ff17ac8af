"""Streams: iterators on top of each other, which all run in the thread that asks for an item.

A library's adapter replaces what makes the iterators of a dataset. Each asks here whether the dataset is
recorded, and by which loader: one of the library's own, or a DataLoader whose dataset it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit import libraries
from headrace.loaders.kit.base import Attachment, guarded, unexpected
from headrace.loaders.kit.graph import Graph
from headrace.record.operator import readable
from headrace.results.loader_model import LoaderModel, LoaderParameter


class StreamStages(NamedTuple):
    """How the stages of a library's streams are timed."""

    #: The modules that define its datasets.
    module: str
    #: Datasets ask from now on whether they are recorded. Raises LookupError for another version.
    install: Callable[[], None]
    #: How many parts workers can share; None: not known, or not a stream.
    shards_of: Callable[[Any], int | None] = lambda _: None
    #: The parameters that its user set in a stream; the first one of a name counts.
    parameters_of: Callable[[Any], Iterable[LoaderParameter]] = lambda _: ()
    #: Whether a stream gives each worker a part of its samples, however many workers there are.
    splits_itself: bool = False


#: Below the dataset that a DataLoader reads, which has `STAGE_DATASET` + 50.
_HIGHEST = _core.STAGE_DATASET + 49
SHARD_ADVICE = "each worker reads shards of its own, so there must be as many shards as workers"
_chains: dict[int, Chain] = {}
#: The operators of the DataLoader that this process is a worker of.
_of_worker: Chain | None = None


class Chain:
    """The operators of one stream in one loader. The same dataset gives the same ones in every process."""

    def __init__(self, loader: int) -> None:
        self._loader = loader
        self._names: dict[str, int] = {}
        self._operators: dict[tuple[int, str, str], _core.OperatorHandle] = {}

    def operator(self, depth: int, name: str, kind: str) -> _core.OperatorHandle:
        """``depth``: of the stage below the last one. Stages side by side with one name are one operator."""
        known = self._operators.get((depth, name, kind))
        if known is None:
            number = self._names[name] = self._names.get(name, 0) + 1
            shown = readable(name if number == 1 else f"{name}#{number}")
            place = max(_core.STAGE_DATASET, _HIGHEST - depth)
            known = _core.OperatorHandle(shown, kind, 0, 0, "num_workers", self._loader, place)
            self._operators[depth, name, kind] = known
        return known

    def timed(self, iterator: Any, depth: int, name: str, kind: str) -> Any:
        return _core.OperatorIterator(iterator, self.operator(depth, name, kind))


def waiting(iterator: Any) -> Any:
    """Its items come from other threads: its time is taken out of that of the operator around it."""
    handle = _core.OperatorHandle("wait", "prefetch", 0, _core.WRAPPED_OBJECT)
    return _core.OperatorIterator(iterator, handle)


def record(dataset: Any, loader: int) -> bool:
    """Loops over ``dataset`` are those of ``loader``. Returns whether its stages are operators too."""
    if not install():
        return False
    key = id(dataset)
    if key not in _chains:
        try:
            remove_with(dataset, _chains, key)
        except TypeError:  # an object of the user's with slots
            return False
    _chains[key] = Chain(loader)
    return _stages_of(dataset) is not None


def record_in_worker(dataset: Any, loader: int) -> bool:
    """In a worker of a DataLoader every stream is its loader's, also one inside the user's dataset."""
    global _of_worker
    has_stages = record(dataset, loader)
    _of_worker = _chains.get(id(dataset))
    return has_stages


def chain_of(dataset: Any) -> Chain | None:
    """The operators that record the loop over ``dataset`` that begins now; None: there is no recording."""
    return _chains.get(id(dataset)) or _of_worker


def shards_of(dataset: Any) -> int | None:
    """How many workers a stream has shards for; None: not known, or not a stream of a known library."""
    stages = _stages_of(dataset)
    with guarded():  # another version
        return (stages and stages.shards_of(dataset)) or None
    return None


def parameters_of(dataset: Any) -> list[LoaderParameter]:
    """The parameters that the user of a stream, of a known library, set in it."""
    stages = _stages_of(dataset)
    found: dict[str, LoaderParameter] = {}
    with guarded():  # another version, or a table
        for each in stages.parameters_of(dataset) if stages is not None else ():
            found.setdefault(each.name, each)
        return list(found.values())
    return []


def splits_itself(dataset: Any) -> bool:
    """Whether a stream gives each worker a part of its samples, however many workers there are."""
    stages = _stages_of(dataset)
    return stages is not None and stages.splits_itself


class StreamAttachment(Attachment):
    """A stream in the training loop: each of its stages is timed."""

    def __init__(self, obj: Any, framework: str) -> None:
        super().__init__(obj)
        self._framework = framework

    def opened(self, handle: _core.LoaderHandle) -> None:
        stream: Any = self.iterable
        record(stream, handle.id)
        self.model = model_in_loop(self._framework, parameters_of(stream), shards_of(stream))


def _stages_of(dataset: Any) -> StreamStages | None:
    """For a dataset of a known library, or of a class of the user's below it."""
    packages = {kind.__module__.partition(".")[0] for kind in type(dataset).__mro__}
    libraries.import_used()
    for stages in libraries.streams:
        if stages.module in sys.modules and stages.module.partition(".")[0] in packages:
            return stages
    return None


def install() -> bool:
    """Datasets of known libraries ask from now on whether they are recorded. False: none is imported."""
    found = False
    libraries.import_used()
    for stages in libraries.streams:
        if stages.module not in sys.modules:
            continue
        with guarded(partial(unexpected, stages.module.partition(".")[0])):
            stages.install()
            found = True
    return found


def model_in_loop(framework: str, parameters: list[LoaderParameter], most_workers: int | None) -> LoaderModel:
    """A stream without a DataLoader: everything runs in the training loop.

    most_workers: parts that workers can share; None: unknown.
    """
    graph, where = Graph(), "iterate over it with torch.utils.data.DataLoader"
    graph.stage("order", 1, "loop")
    graph.stage("workers", 0, "loop", gets_work="own_shard", widened_by="num_workers")
    graph.buffer(1, -1, 0, "prefetch_factor", is_window=True, per_worker=True)
    own: dict[str, Any] = {"min": 0, "max": most_workers, "sets": "workers", "set_in": where}
    graph.parameter("num_workers", value=0, usual=0, **own)
    own = {"min": 1, "sets": "window", "needs_workers": True, "set_in": where}
    graph.parameter("prefetch_factor", value=2, usual=2, **own)
    graph.parameters += parameters
    model = graph.model(framework)
    model.shard_advice = SHARD_ADVICE
    return model
