"""The nodes of each thread and process, read from a tree of Grain's datasets or of its iterators.

A node runs where it is asked for an element, so nodes on each other are one stage. Prefetching nodes have
threads or a process: what is below them is another stage. A tree of datasets and the iterators made of it
give the same stages, which is how a worker process, or an iterator that an interleave makes later, knows its
place. These are private names of grain 0.2.18. Where one is missing, reading raises, and the loader is
recorded as a whole.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from headrace.common.own_attributes import own_attribute
from headrace.loaders.kit import graph as kit
from headrace.record.operator import name_of

#: Deeper trees are not expected; a tree that contains itself ends here.
_DEEPEST = 500

READS = "reads"  # threads that read a MapDataset
THREAD = "thread"  # one thread
PROCESS = "process"
INTERLEAVE = "interleave"
_PASSES = "passes"  # hands on what it gets

#: By the class of a node, without what these end with.
_ENDS = ("MapDataset", "IterDataset", "DatasetIterator", "Iterator")
_KINDS = {"Prefetch": READS, "ThreadPrefetch": THREAD, "ProcessPrefetch": PROCESS, "Interleave": INTERLEAVE}
_KINDS |= dict.fromkeys(("WithOptions", "_MpContext", "_LazyWorkerSlice", "_Output", "Slice"), _PASSES)
_KINDS |= dict.fromkeys(("_DataLoaderPipelineMarker", "_DataLoaderState", "_WithSeed"), _PASSES)
_FUNCTIONS = ("_map_fn", "_filter_fn", "_random_map_fn", "_map_with_index_fn", "_flat_map_fn", "_transform")


@dataclass
class Operator(kit.Operator):
    """One node. `is_here`: whether this process runs it, and it can be timed."""

    node: Any = None
    is_here: bool = True


@dataclass(eq=False)
class Stage(kit.Stage):
    """Operators that the same threads run. No workers: it runs in the training loop."""

    workers: int = 1
    runs_in: str = "thread"
    #: The prefetching node whose threads or process these are.
    node: Any = None
    #: The interleaves and processes that it is below, so many of each tree at once.
    copies: int = 1
    in_process: bool = False


@dataclass
class Nested:
    """A tree that begins later or elsewhere: its stages are numbered from `first` on."""

    node: Any
    first: int
    takes: Stage
    below: Stage
    #: It is not known what the parts of the interleave are: their nodes all belong to `below`.
    is_flat: bool = False


class Graph(kit.Graph):
    """Stages and buffers of nodes, sources first."""

    def __init__(self) -> None:
        super().__init__()
        #: Nodes that a stage waits for while it asks them for an element.
        self.waits: list[tuple[Any, Stage]] = []
        self.nested: list[Nested] = []
        #: Stages that read a MapDataset themselves.
        self.inline: list[Stage] = []
        #: Nodes that read a MapDataset in this process.
        self.reads: list[Any] = []

    def append(self, stage: Stage) -> None:
        gets = "own_shard" if stage.runs_in == "process" else "shared_queue"
        self.add(stage, stage.workers, stage.runs_in, gets_work=gets)

    def shape(self) -> list[tuple[int, str]]:
        return [(stage.workers, stage.runs_in) for stage in self.parts]


def _own_name(kind: type) -> str:
    name = kind.__name__
    for end in _ENDS:
        name = name.removesuffix(end)
    return name


def kind_of(node: Any) -> str:
    names = (_own_name(each) for each in type(node).__mro__ if _is_grains(each))
    return next((_KINDS[name] for name in names if name in _KINDS), "")


def threads_of(node: Any) -> int:
    """Threads of a node that reads; 0: it has none."""
    size = getattr(node, "_target_prefetch_buffer_size", node._read_options.prefetch_buffer_size)
    return int(getattr(node, "_target_num_threads", node._read_options.num_threads)) if size else 0


def size_of(node: Any) -> int:
    """How many elements a prefetching node holds."""
    kind = kind_of(node)
    if kind == READS:
        options = node._read_options.prefetch_buffer_size
        return int(getattr(node, "_target_prefetch_buffer_size", options))
    if kind == THREAD and hasattr(node, "_target_prefetch_buffer_size"):
        return int(node._target_prefetch_buffer_size)
    return int(node._buffer_size if kind == PROCESS else node._prefetch_buffer_size)


def parts_of(interleave: Any) -> Any:
    """The first of an interleave's datasets, and how many are read at once; None: they are made later."""
    parts = interleave._datasets
    cycle = int(interleave._cycle_length)
    if not isinstance(parts, (list, tuple)) or not parts:
        return None, cycle
    return parts[0], min(cycle, len(parts))


def _below(node: Any) -> list[Any]:
    for name in ("_map_parent", "_maybe_nonnative_parent", "_iter_parent"):
        if (below := own_attribute(node, name)) is not None:
            return [below]
    return list(getattr(node, "_parents", ()))


def read_graph(root: Any, loop: Stage | None = None) -> Graph:
    """The graph of ``root`` and the nodes below it. ``loop``: what asks it, if not the training loop."""
    reader = _Reader()
    ends = Stage(workers=0, runs_in="loop") if loop is None else loop
    reader.visit(root, ends, 0)
    if loop is None and ends.operators:
        reader.graph.append(ends)
    return reader.graph


class _Reader:
    def __init__(self) -> None:
        self.graph = Graph()
        self._is_here = True
        self._copies = 1
        self._in_process = False

    def visit(self, node: Any, stage: Stage, depth: int) -> None:
        """Enter ``node``, which ``stage`` asks for elements, after what it takes from."""
        if depth > _DEEPEST:
            raise LookupError("its nodes are too deep")
        kind = kind_of(node)
        if kind == READS and self._is_here:
            self.graph.reads.append(node)
        if kind == READS and threads_of(node) == 0:
            self.graph.inline.append(stage)
            kind = _PASSES
        if kind == THREAD and size_of(node) == 0:
            kind = _PASSES
        if kind == INTERLEAVE:
            self._interleave(node, stage, depth)
        elif kind in (READS, THREAD, PROCESS):
            self._prefetch(node, stage, depth, kind)
        else:
            for below in _below(node):
                self.visit(below, stage, depth + 1)
            if kind != _PASSES:
                stage.operators.append(Operator(*name_and_kind(node), None, node, self._is_here))

    def _stage(self, node: Any, workers: int, runs_in: str) -> Stage:
        in_process = self._in_process or runs_in == "process"
        return Stage([], -1, workers * self._copies, runs_in, node, self._copies, in_process)

    def _prefetch(self, node: Any, stage: Stage, depth: int, kind: str) -> None:
        outside = self._is_here, self._in_process
        first = len(self.graph.stages)
        workers = threads_of(node) if kind == READS else 1
        below = self._stage(node, workers, "process" if kind == PROCESS else "thread")
        if kind == PROCESS:
            self._is_here, self._in_process = False, True
        for each in _below(node):
            self.visit(each, below, depth + 1)
        self._is_here, self._in_process = outside
        if self._is_here:
            self.graph.waits.append((node, stage))
            if kind == PROCESS:
                self.graph.nested.append(Nested(node, first, stage, below))
        self._connect(below, stage, size_of(node), kind, [node] if self._is_here else [])

    def _connect(self, below: Stage, stage: Stage, size: int, kind: str, nodes: list[Any]) -> None:
        capacity = size * self._copies
        if below.operators:
            self.graph.append(below)
            self.graph.between.append(kit.Buffer(below, stage, capacity, nodes, kind, self._copies))
        else:
            self.graph.pass_on(below, stage, capacity, nodes)

    def _interleave(self, node: Any, stage: Stage, depth: int) -> None:
        part, cycle = parts_of(node)
        was_here, copies = self._is_here, self._copies
        if was_here:
            self.graph.waits.append((node, stage))
        first = len(self.graph.stages)
        self._is_here, self._copies = False, copies * cycle
        below = self._stage(node, 1, "thread")
        size = int(node._iter_buffer_size)
        is_flat = part is None
        if hasattr(part, "to_iter_dataset"):  # Grain reads a MapDataset in threads
            part, size = part.to_iter_dataset(), 0
        if is_flat:
            below.operators.append(Operator("interleave", "source", None, node, False))
        else:
            self.visit(part, below, depth + 1)
        self._connect(below, stage, size, INTERLEAVE, [])
        for buffer in self.graph.between:
            # Elements of its parts come out of this node, which this process has.
            if was_here and buffer.takes is stage and not buffer.owners and buffer.fills.place >= first:
                buffer.owners.append(node)
        self._is_here, self._copies = was_here, copies
        if was_here:
            self.graph.nested.append(Nested(node, first, stage, below, is_flat))


def name_and_kind(node: Any) -> tuple[str, str]:
    """A node's name, as its user would say it, and its kind."""
    own = _own_name(type(node)).strip("_") or type(node).__name__
    if own == "Source":
        return name_of(node._source), "source"
    if own == "Range":
        return "range", "source"
    if own == "Batch":
        function = getattr(node, "_batch_fn", None)
        function = getattr(function, "values_batch_fn", function)  # of a DataLoader
        if function is not None and not _is_grains(function):
            return name_of(function), "batch"
        return f"batch({node._batch_size})", "batch"
    kind = "filter" if "Filter" in own else "shuffle" if "Shuffle" in own else ""
    for name in _FUNCTIONS:
        function = getattr(node, name, None)
        if function is not None:
            return _function_name(function), kind or "map"
    shown = own[0].lower() + own[1:] if _is_grains(type(node)) else own
    return shown, kind or ("map" if _below(node) else "source")


def _function_name(function: Any) -> str:
    if getattr(function, "__closure__", None) and _is_grains(function):
        # A DataLoader's own function around the user's operation.
        inside = next((cell.cell_contents for cell in function.__closure__), function)
        return type(inside).__name__
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, (type, ModuleType)):
        return type(owner).__name__  # a transformation with a method of Grain's name
    return "data" if _is_grains(function) else name_of(function)


def _is_grains(thing: Any) -> bool:
    while isinstance(thing, functools.partial):
        thing = thing.func
    module = getattr(thing, "__module__", None) or getattr(type(thing), "__module__", "")
    return str(module).partition(".")[0] == "grain"
